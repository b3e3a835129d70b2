// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {GroupMessages} from "../../../contracts/GroupMessages.sol";
import {IdentityUpdates} from "../../../contracts/IdentityUpdates.sol";
import {OriginatorSequence} from "../../../contracts/OriginatorSequence.sol";
import {SequencedLogProxy} from "../../../contracts/SequencedLogProxy.sol";
import {SequencedLog} from "../../../contracts/base/SequencedLog.sol";
import {IGroupMessages} from "../../../contracts/interfaces/IGroupMessages.sol";
import {IIdentityUpdates} from "../../../contracts/interfaces/IIdentityUpdates.sol";
import {IOriginatorSequence} from "../../../contracts/interfaces/IOriginatorSequence.sol";
import {ISequencedLog} from "../../../contracts/interfaces/ISequencedLog.sol";
import {GroupMessagesSuccessor} from "../../solidity/GroupMessagesSuccessor.sol";
import {IdentityUpdatesSuccessor} from "../../solidity/IdentityUpdatesSuccessor.sol";
import {TestBase} from "./TestBase.sol";

/// @title SequencedLogs
/// @notice Both payload contracts as they are deployed, and each spoken to by its topic kind, so that
/// one test serves both.
abstract contract SequencedLogs is TestBase {
    uint256 internal constant GROUP_MESSAGE = 0;
    uint256 internal constant IDENTITY_UPDATE = 2;

    uint32 internal constant MIN_PAYLOAD_SIZE = 10;
    uint32 internal constant MAX_PAYLOAD_SIZE = 2000;
    uint32 internal constant PAYLOAD_SIZE_CAP = 1024 * 1024;

    /// @dev ERC-1967: keccak256("eip1967.proxy.implementation") - 1.
    bytes32 internal constant IMPLEMENTATION_SLOT =
        bytes32(uint256(keccak256("eip1967.proxy.implementation")) - 1);

    OriginatorSequence internal sequence;
    SequencedLog internal groupMessages;
    SequencedLog internal identityUpdates;

    /* DEPLOYMENT */

    /// @dev The sequence comes first, with the addresses at which the proxies will stand.
    function _deployLogs() internal {
        uint256 nonce = vm.getNonce(address(this));
        address groupMessagesProxy = vm.computeCreateAddress(address(this), nonce + 2);
        address identityUpdatesProxy = vm.computeCreateAddress(address(this), nonce + 4);
        sequence = new OriginatorSequence(groupMessagesProxy, identityUpdatesProxy);
        groupMessages = _deployProxy(_newImplementation(GROUP_MESSAGE, sequence));
        identityUpdates = _deployProxy(_newImplementation(IDENTITY_UPDATE, sequence));
        vm.assertEq(address(groupMessages), groupMessagesProxy);
        vm.assertEq(address(identityUpdates), identityUpdatesProxy);
    }

    function _deployProxy(address implementation) private returns (SequencedLog proxy) {
        bytes memory initialization = _initialization(admin, MIN_PAYLOAD_SIZE, MAX_PAYLOAD_SIZE);
        return SequencedLog(address(new SequencedLogProxy(implementation, initialization)));
    }

    function _initialization(address firstAdmin, uint32 minimum, uint32 maximum)
        internal
        pure
        returns (bytes memory call)
    {
        return abi.encodeCall(ISequencedLog.initialize, (firstAdmin, minimum, maximum));
    }

    /* BY TOPIC KIND */

    function _log(uint256 kind) internal view returns (SequencedLog log) {
        return kind == GROUP_MESSAGE ? groupMessages : identityUpdates;
    }

    function _newImplementation(uint256 kind, IOriginatorSequence sequence_)
        internal
        returns (address implementation)
    {
        if (kind == GROUP_MESSAGE) return address(new GroupMessages(sequence_));
        return address(new IdentityUpdates(sequence_));
    }

    function _newSuccessor(uint256 kind) internal returns (address implementation) {
        if (kind == GROUP_MESSAGE) return address(new GroupMessagesSuccessor(sequence));
        return address(new IdentityUpdatesSuccessor(sequence));
    }

    function _publication(uint256 kind, bytes32 identifier, bytes memory payload)
        internal
        pure
        returns (bytes memory call)
    {
        if (kind == GROUP_MESSAGE) {
            return abi.encodeCall(IGroupMessages.addMessage, (identifier, payload));
        }
        return abi.encodeCall(IIdentityUpdates.addIdentityUpdate, (identifier, payload));
    }

    function _publishedTopic(uint256 kind) internal pure returns (bytes32 topic) {
        if (kind == GROUP_MESSAGE) return IGroupMessages.MessageSent.selector;
        return IIdentityUpdates.IdentityUpdateCreated.selector;
    }

    /// @dev The next call must emit this payload, unchanged, under this sequence id.
    function _expectPublished(
        uint256 kind,
        bytes32 identifier,
        bytes memory payload,
        uint64 sequenceId
    ) internal {
        vm.expectEmit(address(_log(kind)));
        if (kind == GROUP_MESSAGE) {
            emit IGroupMessages.MessageSent(identifier, payload, sequenceId);
        } else {
            emit IIdentityUpdates.IdentityUpdateCreated(identifier, payload, sequenceId);
        }
    }

    function _publish(uint256 kind, address account, bytes32 identifier, bytes memory payload)
        internal
    {
        SequencedLog log = _log(kind);
        vm.prank(account);
        if (kind == GROUP_MESSAGE) {
            IGroupMessages(address(log)).addMessage(identifier, payload);
        } else {
            IIdentityUpdates(address(log)).addIdentityUpdate(identifier, payload);
        }
    }

    function _implementationOf(SequencedLog log) internal view returns (address implementation) {
        return address(uint160(uint256(vm.load(address(log), IMPLEMENTATION_SLOT))));
    }
}
