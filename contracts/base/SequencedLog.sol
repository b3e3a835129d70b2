// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {
    AccessControlEnumerableUpgradeable
} from "@openzeppelin/contracts-upgradeable/access/extensions/AccessControlEnumerableUpgradeable.sol";
import {UUPSUpgradeable} from "@openzeppelin/contracts/proxy/utils/UUPSUpgradeable.sol";
import {IOriginatorSequence} from "../interfaces/IOriginatorSequence.sol";
import {ISequencedLog} from "../interfaces/ISequencedLog.sol";

/// @title SequencedLog
/// @notice The part that GroupMessages and IdentityUpdates share. See ISequencedLog.
abstract contract SequencedLog is
    ISequencedLog,
    AccessControlEnumerableUpgradeable,
    UUPSUpgradeable
{
    /* CONSTANTS */

    /// @dev An envelope around a payload of this size still fits what nodes send in one message.
    uint32 private constant PAYLOAD_SIZE_CAP = 1024 * 1024;

    /* STORAGE */

    /// @dev One slot, so that publishing reads the pause and the bounds at once. This is why pausing
    /// is written here: OpenZeppelin's keeps its flag in a slot of its own, 2,100 gas a message.
    /// @custom:storage-location erc7201:chainkit.storage.SequencedLog
    struct SequencedLogStorage {
        bool paused;
        uint32 minPayloadSize;
        uint32 maxPayloadSize;
    }

    /// @dev keccak256(abi.encode(uint256(keccak256("chainkit.storage.SequencedLog")) - 1))
    /// & ~bytes32(uint256(0xff)), as in ERC-7201.
    bytes32 private constant SEQUENCED_LOG_STORAGE =
        0xc4e9928a0b7700cb9e19bb8d48232d4e780fbefae57f9bb4190f2d161b99d500;

    /// @inheritdoc ISequencedLog
    /// @custom:oz-upgrades-unsafe-allow state-variable-immutable
    IOriginatorSequence public immutable originatorSequence;

    /* CONSTRUCTOR */

    /// @notice Constructs an implementation that nobody can initialize itself.
    /// @param sequence The shared sequence; it must be deployed.
    /// @custom:oz-upgrades-unsafe-allow constructor
    constructor(IOriginatorSequence sequence) {
        if (address(sequence).code.length == 0) {
            revert InvalidOriginatorSequence(address(sequence));
        }
        originatorSequence = sequence;
        _disableInitializers();
    }

    /// @inheritdoc ISequencedLog
    function initialize(address admin, uint32 minPayloadSize, uint32 maxPayloadSize)
        external
        initializer
    {
        _grantRole(DEFAULT_ADMIN_ROLE, admin);
        _setPayloadBounds(minPayloadSize, maxPayloadSize);
    }

    /* PAUSING */

    /// @inheritdoc ISequencedLog
    function pause() external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (paused()) revert EnforcedPause();
        _sequencedLogStorage().paused = true;
        emit Paused(msg.sender);
    }

    /// @inheritdoc ISequencedLog
    function unpause() external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (!paused()) revert ExpectedPause();
        _sequencedLogStorage().paused = false;
        emit Unpaused(msg.sender);
    }

    /// @inheritdoc ISequencedLog
    function paused() public view returns (bool isPaused) {
        return _sequencedLogStorage().paused;
    }

    /* PAYLOAD BOUNDS */

    /// @inheritdoc ISequencedLog
    function setPayloadBounds(uint32 minPayloadSize, uint32 maxPayloadSize)
        external
        onlyRole(DEFAULT_ADMIN_ROLE)
    {
        _setPayloadBounds(minPayloadSize, maxPayloadSize);
    }

    /// @inheritdoc ISequencedLog
    function payloadBounds() external view returns (uint32 minimum, uint32 maximum) {
        SequencedLogStorage storage $ = _sequencedLogStorage();
        return ($.minPayloadSize, $.maxPayloadSize);
    }

    /// @inheritdoc ISequencedLog
    function payloadSizeCap() external pure returns (uint32 cap) {
        return PAYLOAD_SIZE_CAP;
    }

    /* SEQUENCE */

    /// @inheritdoc ISequencedLog
    function lastSequenceId() external view returns (uint64 sequenceId) {
        return originatorSequence.last();
    }

    /// @inheritdoc ISequencedLog
    function topicKind() public pure virtual returns (uint256 kind);

    /* INTERNALS */

    /// @dev What every publishing function calls: refuses while paused or out of bounds, else takes
    /// the payload's sequence id.
    function _takeSequenceId(uint256 payloadSize) internal returns (uint64 sequenceId) {
        SequencedLogStorage storage $ = _sequencedLogStorage();
        (bool isPaused, uint256 minimum, uint256 maximum) =
            ($.paused, $.minPayloadSize, $.maxPayloadSize);
        if (isPaused) revert EnforcedPause();
        if (payloadSize < minimum || payloadSize > maximum) {
            revert PayloadSizeOutOfBounds(payloadSize, minimum, maximum);
        }
        return originatorSequence.next();
    }

    function _setPayloadBounds(uint32 minimum, uint32 maximum) internal {
        if (minimum > maximum || maximum == 0 || maximum > PAYLOAD_SIZE_CAP) {
            revert InvalidPayloadBounds(minimum, maximum, PAYLOAD_SIZE_CAP);
        }
        SequencedLogStorage storage $ = _sequencedLogStorage();
        $.minPayloadSize = minimum;
        $.maxPayloadSize = maximum;
        emit PayloadBoundsSet(msg.sender, minimum, maximum);
    }

    function _grantRole(bytes32 role, address account) internal override returns (bool granted) {
        bool canAct = account != address(0) && account != address(this);
        if (role == DEFAULT_ADMIN_ROLE && !canAct) revert InvalidAdmin(account);
        return super._grantRole(role, account);
    }

    /// @dev Both `revokeRole` and `renounceRole` end here.
    function _revokeRole(bytes32 role, address account) internal override returns (bool revoked) {
        revoked = super._revokeRole(role, account);
        if (revoked && role == DEFAULT_ADMIN_ROLE && getRoleMemberCount(role) == 0) {
            revert LastAdmin(account);
        }
    }

    function _authorizeUpgrade(address newImplementation)
        internal
        override
        onlyRole(DEFAULT_ADMIN_ROLE)
    {
        _requireSameSequence(newImplementation);
        _requireSameTopicKind(newImplementation);
        emit UpgradeAuthorized(msg.sender, newImplementation);
    }

    function _requireSameSequence(address newImplementation) internal view {
        address current = address(originatorSequence);
        uint256 answer = _ask(newImplementation, ISequencedLog.originatorSequence.selector, 0);
        // The cast can only lose bits that an address has not, and then the answer is none.
        // forge-lint: disable-next-line(unsafe-typecast)
        address proposed = answer > type(uint160).max ? address(0) : address(uint160(answer));
        if (proposed != current) revert OriginatorSequenceChanged(current, proposed);
    }

    function _requireSameTopicKind(address newImplementation) internal view {
        uint256 current = topicKind();
        uint256 proposed =
            _ask(newImplementation, ISequencedLog.topicKind.selector, type(uint256).max);
        if (proposed != current) revert TopicKindChanged(current, proposed);
    }

    /// @dev One word that a contract answers to a call without arguments, `otherwise` if it answers
    /// anything else, so that a wrong address is refused with a named error.
    function _ask(address target, bytes4 selector, uint256 otherwise)
        internal
        view
        returns (uint256 answer)
    {
        // A typed call would revert without a name; a static one changes nothing, whatever answers.
        // slither-disable-start low-level-calls
        // solhint-disable-next-line avoid-low-level-calls
        (bool success, bytes memory data) = target.staticcall(abi.encodeWithSelector(selector));
        // slither-disable-end low-level-calls
        return success && data.length == 32 ? abi.decode(data, (uint256)) : otherwise;
    }

    function _sequencedLogStorage() private pure returns (SequencedLogStorage storage $) {
        // ERC-7201's own pattern: Solidity has no other way to name a slot.
        // slither-disable-start assembly
        // solhint-disable-next-line no-inline-assembly
        assembly {
            $.slot := SEQUENCED_LOG_STORAGE
        }
        // slither-disable-end assembly
    }
}
