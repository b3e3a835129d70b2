// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {NodeRegistry} from "../../../contracts/NodeRegistry.sol";
import {INodeRegistry} from "../../../contracts/interfaces/INodeRegistry.sol";
import {SigningKeys} from "./SigningKeys.sol";

/// @title NodeRegistrySuite
/// @notice A registry of the owner's, and what the suites over it share.
abstract contract NodeRegistrySuite is SigningKeys {
    string internal constant HTTP_ADDRESS = "https://node.example:5050";
    uint256 internal constant MAX_HTTP_ADDRESS_LENGTH = 512;
    uint256 internal constant NODE_INCREMENT = 100;

    NodeRegistry internal registry;

    function setUp() public virtual {
        registry = new NodeRegistry(owner);
    }

    function _add(address holder, uint256 secret) internal returns (uint32 nodeId) {
        return _addWithKey(holder, _keyOf(secret));
    }

    function _addWithKey(address holder, bytes memory key) internal returns (uint32 nodeId) {
        vm.prank(owner);
        return registry.addNode(holder, key, HTTP_ADDRESS);
    }

    function _node(uint256 secret, bool isHealthy)
        internal
        returns (INodeRegistry.Node memory node)
    {
        return INodeRegistry.Node(_keyOf(secret), HTTP_ADDRESS, isHealthy);
    }
}
