// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {Initializable} from "@openzeppelin/contracts/proxy/utils/Initializable.sol";
import {UUPSUpgradeable} from "@openzeppelin/contracts/proxy/utils/UUPSUpgradeable.sol";
import {IOriginatorSequence} from "../../../contracts/interfaces/IOriginatorSequence.sol";
import {ISequencedLog} from "../../../contracts/interfaces/ISequencedLog.sol";
import {Vm} from "../support/Vm.sol";
import {SequencedLogsModel} from "./SequencedLogsModel.sol";

/// @title SequencedLogsHandler
/// @notice What forge calls, in any order: each function lets some actor try something.
contract SequencedLogsHandler is SequencedLogsModel {
    /// @dev What was seen in the logs, in order. The model has no part in it.
    struct Publication {
        uint256 kind;
        uint64 sequenceId;
        bool wasPaused;
        bytes32 contentHash;
    }

    uint256 internal constant MAX_HANDLED_SIZE = 300;
    uint32 internal constant MAX_HANDLED_BOUND = 200;

    Publication[] internal publications;

    /// @dev What was asked for and accepted, in order.
    Publication[] internal requests;

    /* PUBLISHING */

    function publish(uint256 kindSeed, uint256 actorSeed, bytes32 identifier, uint256 sizeSeed)
        external
    {
        uint256 kind = _kindOf(kindSeed);
        bytes memory payload = _payload(sizeSeed, _bound(sizeSeed, 0, MAX_HANDLED_SIZE));
        bytes memory call = _publication(kind, identifier, payload);
        bytes memory refusal = _publicationRefusal(kind, payload.length);
        if (!_try(kind, _actorOf(actorSeed), call, refusal)) return;
        bytes32 contentHash = keccak256(abi.encode(identifier, payload));
        requests.push(Publication(kind, sequence.last(), false, contentHash));
    }

    function next(uint256 actorSeed) external {
        address actor = _actorOf(actorSeed);
        bytes memory refusal =
            abi.encodeWithSelector(IOriginatorSequence.UnauthorizedSequenceCaller.selector, actor);
        _attempt(actor, address(sequence), abi.encodeCall(IOriginatorSequence.next, ()), refusal);
    }

    /* ADMINISTRATION */

    function pause(uint256 kindSeed, uint256 actorSeed) external {
        uint256 kind = _kindOf(kindSeed);
        bytes memory refusal =
            models[kind].isPaused ? _error(ISequencedLog.EnforcedPause.selector) : ACCEPTED;
        if (_tryAsAdmin(kind, actorSeed, abi.encodeCall(ISequencedLog.pause, ()), refusal)) {
            models[kind].isPaused = true;
        }
    }

    function unpause(uint256 kindSeed, uint256 actorSeed) external {
        uint256 kind = _kindOf(kindSeed);
        bytes memory refusal =
            models[kind].isPaused ? ACCEPTED : _error(ISequencedLog.ExpectedPause.selector);
        if (_tryAsAdmin(kind, actorSeed, abi.encodeCall(ISequencedLog.unpause, ()), refusal)) {
            models[kind].isPaused = false;
        }
    }

    function setPayloadBounds(
        uint256 kindSeed,
        uint256 actorSeed,
        uint32 minimum,
        uint32 maximum,
        bool small
    ) external {
        uint256 kind = _kindOf(kindSeed);
        // Bounds of any size are rarely valid, and bounds beyond what is published refuse nothing.
        if (small) (minimum, maximum) = (minimum % MAX_HANDLED_BOUND, maximum % MAX_HANDLED_BOUND);
        bytes memory call = abi.encodeCall(ISequencedLog.setPayloadBounds, (minimum, maximum));
        if (!_tryAsAdmin(kind, actorSeed, call, _boundsRefusal(minimum, maximum))) return;
        (models[kind].minimum, models[kind].maximum) = (minimum, maximum);
    }

    function initialize(uint256 kindSeed, uint256 actorSeed) external {
        uint256 kind = _kindOf(kindSeed);
        address actor = _chosenActor(kind, actorSeed);
        bytes memory call = _initialization(actor, 0, PAYLOAD_SIZE_CAP);
        _try(kind, actor, call, _error(Initializable.InvalidInitialization.selector));
    }

    /* ROLES */

    function grantRole(uint256 kindSeed, uint256 actorSeed, uint256 accountSeed) external {
        uint256 kind = _kindOf(kindSeed);
        address account = _candidateAdmin(kind, accountSeed);
        bool canAct = account != address(0) && account != address(_log(kind));
        bytes memory refusal =
            canAct ? ACCEPTED : _error(ISequencedLog.InvalidAdmin.selector, account);
        bytes memory call = abi.encodeCall(IAccessControl.grantRole, (DEFAULT_ADMIN_ROLE, account));
        if (_tryAsAdmin(kind, actorSeed, call, refusal)) _addAdmin(kind, account);
    }

    function revokeRole(uint256 kindSeed, uint256 actorSeed, uint256 accountSeed) external {
        uint256 kind = _kindOf(kindSeed);
        address account = _candidateAdmin(kind, accountSeed);
        bytes memory call = abi.encodeCall(IAccessControl.revokeRole, (DEFAULT_ADMIN_ROLE, account));
        if (_tryAsAdmin(kind, actorSeed, call, _removalRefusal(kind, account))) {
            _removeAdmin(kind, account);
        }
    }

    function renounceRole(uint256 kindSeed, uint256 actorSeed, uint256 accountSeed) external {
        uint256 kind = _kindOf(kindSeed);
        address actor = _chosenActor(kind, actorSeed);
        // Half of the actors speak for themselves.
        address account = accountSeed % 2 == 0 ? actor : _candidateAdmin(kind, accountSeed);
        bytes memory refusal = account == actor
            ? _removalRefusal(kind, account)
            : _error(IAccessControl.AccessControlBadConfirmation.selector);
        bytes memory call =
            abi.encodeCall(IAccessControl.renounceRole, (DEFAULT_ADMIN_ROLE, account));
        if (_try(kind, actor, call, refusal)) _removeAdmin(kind, account);
    }

    /* UPGRADES */

    function upgrade(uint256 kindSeed, uint256 actorSeed, uint256 candidateSeed) external {
        uint256 kind = _kindOf(kindSeed);
        uint256 candidate = candidateSeed % CANDIDATES;
        address implementation = candidates[kind][candidate];
        bytes memory call =
            abi.encodeCall(UUPSUpgradeable.upgradeToAndCall, (implementation, bytes("")));
        if (_tryAsAdmin(kind, actorSeed, call, _upgradeRefusal(kind, candidate))) {
            models[kind].implementation = implementation;
        }
    }

    /* WHAT WAS SEEN */

    function observed() external view returns (Publication[] memory seen) {
        return publications;
    }

    function requested() external view returns (Publication[] memory accepted) {
        return requests;
    }

    /* INTERNALS */

    function _tryAsAdmin(uint256 kind, uint256 actorSeed, bytes memory call, bytes memory refusal)
        private
        returns (bool accepted)
    {
        address actor = _chosenActor(kind, actorSeed);
        if (!models[kind].isAdmin[actor]) refusal = _notAdmin(actor);
        return _try(kind, actor, call, refusal);
    }

    function _try(uint256 kind, address actor, bytes memory call, bytes memory refusal)
        private
        returns (bool accepted)
    {
        bool wasPaused = _log(kind).paused();
        Vm.Log[] memory logs;
        (accepted, logs) = _attempt(actor, address(_log(kind)), call, refusal);
        for (uint256 index = 0; index < logs.length; ++index) {
            _observe(logs[index], wasPaused);
        }
    }

    function _observe(Vm.Log memory seen, bool wasPaused) private {
        uint256 kind = seen.emitter == address(groupMessages) ? GROUP_MESSAGE : IDENTITY_UPDATE;
        if (seen.topics[0] != _publishedTopic(kind)) return;
        (bytes32 identifier, bytes memory payload, uint64 sequenceId) =
            abi.decode(seen.data, (bytes32, bytes, uint64));
        bytes32 contentHash = keccak256(abi.encode(identifier, payload));
        publications.push(Publication(kind, sequenceId, wasPaused, contentHash));
    }
}
