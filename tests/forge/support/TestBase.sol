// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {Vm} from "./Vm.sol";

/// @title TestBase
/// @notice The cheatcodes, the actors by their roles, and what every suite needs.
abstract contract TestBase {
    // As every forge test names it.
    // solhint-disable-next-line const-name-snakecase
    Vm internal constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

    bytes32 internal constant DEFAULT_ADMIN_ROLE = bytes32(0);

    /* ACTORS */

    address internal immutable admin = _actor("admin");
    address internal immutable secondAdmin = _actor("secondAdmin");
    address internal immutable owner = _actor("owner");
    address internal immutable newOwner = _actor("newOwner");
    address internal immutable operator = _actor("operator");
    address internal immutable secondOperator = _actor("secondOperator");
    address internal immutable publisher = _actor("publisher");
    address internal immutable stranger = _actor("stranger");

    function _actor(string memory name) private returns (address account) {
        account = address(uint160(uint256(keccak256(bytes(name)))));
        vm.label(account, name);
    }

    /* FUZZED INPUTS */

    /// @dev `value` brought between `low` and `high`, both included, evenly.
    function _bound(uint256 value, uint256 low, uint256 high)
        internal
        pure
        returns (uint256 bounded)
    {
        return low + value % (high - low + 1);
    }

    /// @dev `size` bytes of which each word depends on `seed` and its place.
    function _payload(uint256 seed, uint256 size) internal pure returns (bytes memory payload) {
        payload = new bytes(size);
        for (uint256 start = 0; start < size; start += 32) {
            bytes32 word = keccak256(abi.encode(seed, start));
            for (uint256 index = start; index < size && index < start + 32; ++index) {
                payload[index] = word[index - start];
            }
        }
    }

    /* REFUSALS */

    function _expectNotAdmin(address account) internal {
        vm.expectRevert(_notAdmin(account));
    }

    function _expectNotOwner(address account) internal {
        vm.expectRevert(_notOwner(account));
    }

    function _notAdmin(address account) internal pure returns (bytes memory refusal) {
        return abi.encodeWithSelector(
            IAccessControl.AccessControlUnauthorizedAccount.selector, account, DEFAULT_ADMIN_ROLE
        );
    }

    function _notOwner(address account) internal pure returns (bytes memory refusal) {
        return abi.encodeWithSelector(Ownable.OwnableUnauthorizedAccount.selector, account);
    }
}
