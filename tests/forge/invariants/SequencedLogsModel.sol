// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {OriginatorSequence} from "../../../contracts/OriginatorSequence.sol";
import {SequencedLog} from "../../../contracts/base/SequencedLog.sol";
import {ISequencedLog} from "../../../contracts/interfaces/ISequencedLog.sol";
import {Attempts} from "../support/Attempts.sol";
import {SequencedLogs} from "../support/SequencedLogs.sol";

/// @title SequencedLogsModel
/// @notice Both payload contracts and their sequence beside a model of them, which says of each call
/// whether it is accepted, and if not, with which error.
abstract contract SequencedLogsModel is Attempts, SequencedLogs {
    /// @dev What the contract of one topic kind should be by now.
    struct Model {
        bool isPaused;
        uint32 minimum;
        uint32 maximum;
        address implementation;
        mapping(address account => bool) isAdmin;
        uint256 admins;
    }

    uint256 internal constant CANDIDATES = 6;

    mapping(uint256 kind => Model) internal models;

    /// @dev To what a contract may be asked to upgrade: the first three are right.
    mapping(uint256 kind => mapping(uint256 candidate => address)) internal candidates;

    constructor() {
        _deployLogs();
        OriginatorSequence otherSequence = new OriginatorSequence(publisher, stranger);
        _prepare(GROUP_MESSAGE, otherSequence);
        _prepare(IDENTITY_UPDATE, otherSequence);
    }

    function _prepare(uint256 kind, OriginatorSequence otherSequence) private {
        Model storage model = models[kind];
        model.minimum = MIN_PAYLOAD_SIZE;
        model.maximum = MAX_PAYLOAD_SIZE;
        model.isAdmin[admin] = true;
        model.admins = 1;
        model.implementation = _implementationOf(_log(kind));
        candidates[kind][0] = model.implementation;
        candidates[kind][1] = _newImplementation(kind, sequence);
        candidates[kind][2] = _newSuccessor(kind);
        candidates[kind][3] = _newImplementation(_siblingOf(kind), sequence);
        candidates[kind][4] = _newImplementation(kind, otherSequence);
        candidates[kind][5] = stranger;
    }

    /* WHAT THE MODEL SAYS */

    function modelOf(uint256 kind)
        external
        view
        returns (bool isPaused, uint32 minimum, uint32 maximum, address implementation)
    {
        Model storage model = models[kind];
        return (model.isPaused, model.minimum, model.maximum, model.implementation);
    }

    function modelAdmins(uint256 kind) external view returns (address[] memory admins) {
        admins = new address[](models[kind].admins);
        uint256 found = 0;
        for (uint256 index = 0; index < actors.length; ++index) {
            if (models[kind].isAdmin[actors[index]]) admins[found++] = actors[index];
        }
        vm.assertEq(found, admins.length, "the model has an administrator who is no actor");
    }

    function logOf(uint256 kind) external view returns (SequencedLog log) {
        return _log(kind);
    }

    function implementationOf(uint256 kind) external view returns (address implementation) {
        return _implementationOf(_log(kind));
    }

    function sharedSequence() external view returns (OriginatorSequence shared) {
        return sequence;
    }

    /* INTERNALS */

    function _addAdmin(uint256 kind, address account) internal {
        if (models[kind].isAdmin[account]) return;
        models[kind].isAdmin[account] = true;
        ++models[kind].admins;
    }

    function _removeAdmin(uint256 kind, address account) internal {
        if (!models[kind].isAdmin[account]) return;
        models[kind].isAdmin[account] = false;
        --models[kind].admins;
    }

    /* WHAT THE CONTRACTS SAY */

    /// @dev All that a call to one of the three contracts may change.
    function _fingerprint() internal view override returns (bytes32 digest) {
        return
            keccak256(
                abi.encode(sequence.last(), _stateOf(GROUP_MESSAGE), _stateOf(IDENTITY_UPDATE))
            );
    }

    function _stateOf(uint256 kind) internal view returns (bytes memory state) {
        SequencedLog log = _log(kind);
        (uint32 minimum, uint32 maximum) = log.payloadBounds();
        address[] memory admins = log.getRoleMembers(DEFAULT_ADMIN_ROLE);
        return abi.encode(log.paused(), minimum, maximum, admins, _implementationOf(log));
    }

    /* REFUSALS */

    function _publicationRefusal(uint256 kind, uint256 size)
        internal
        view
        returns (bytes memory refusal)
    {
        Model storage model = models[kind];
        if (model.isPaused) return _error(ISequencedLog.EnforcedPause.selector);
        if (size >= model.minimum && size <= model.maximum) return ACCEPTED;
        return abi.encodeWithSelector(
            ISequencedLog.PayloadSizeOutOfBounds.selector, size, model.minimum, model.maximum
        );
    }

    function _removalRefusal(uint256 kind, address account)
        internal
        view
        returns (bytes memory refusal)
    {
        bool isLast = models[kind].isAdmin[account] && models[kind].admins == 1;
        return isLast ? _error(ISequencedLog.LastAdmin.selector, account) : ACCEPTED;
    }

    function _upgradeRefusal(uint256 kind, uint256 candidate)
        internal
        view
        returns (bytes memory refusal)
    {
        if (candidate < 3) return ACCEPTED;
        if (candidate == 3) {
            return
                abi.encodeWithSelector(
                    ISequencedLog.TopicKindChanged.selector, kind, _siblingOf(kind)
                );
        }
        address proposed = candidate == 4
            ? address(SequencedLog(candidates[kind][4]).originatorSequence())
            : address(0);
        return abi.encodeWithSelector(
            ISequencedLog.OriginatorSequenceChanged.selector, sequence, proposed
        );
    }

    function _error(bytes4 selector) internal pure returns (bytes memory refusal) {
        return abi.encodeWithSelector(selector);
    }

    function _error(bytes4 selector, address account) internal pure returns (bytes memory refusal) {
        return abi.encodeWithSelector(selector, account);
    }

    function _boundsRefusal(uint32 minimum, uint32 maximum)
        internal
        pure
        returns (bytes memory refusal)
    {
        if (minimum <= maximum && maximum > 0 && maximum <= PAYLOAD_SIZE_CAP) return ACCEPTED;
        return abi.encodeWithSelector(
            ISequencedLog.InvalidPayloadBounds.selector, minimum, maximum, PAYLOAD_SIZE_CAP
        );
    }

    /* CHOICES */

    /// @dev Half of the choices fall on an administrator, so that something happens.
    function _chosenActor(uint256 kind, uint256 seed) internal view returns (address actor) {
        if (seed % 2 == 0) return _actorOf(seed / 2);
        address[] memory admins = _log(kind).getRoleMembers(DEFAULT_ADMIN_ROLE);
        return admins[(seed / 2) % admins.length];
    }

    /// @dev One of the actors, the zero address or the contract itself.
    function _candidateAdmin(uint256 kind, uint256 seed) internal view returns (address account) {
        uint256 choice = seed % (actors.length + 2);
        if (choice < actors.length) return actors[choice];
        return choice == actors.length ? address(0) : address(_log(kind));
    }

    function _kindOf(uint256 seed) internal pure returns (uint256 kind) {
        return seed % 2 == 0 ? GROUP_MESSAGE : IDENTITY_UPDATE;
    }

    function _siblingOf(uint256 kind) internal pure returns (uint256 sibling) {
        return kind == GROUP_MESSAGE ? IDENTITY_UPDATE : GROUP_MESSAGE;
    }
}
