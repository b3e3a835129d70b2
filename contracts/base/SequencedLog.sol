// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {
    AccessControlUpgradeable
} from "@openzeppelin/contracts-upgradeable/access/AccessControlUpgradeable.sol";
import {
    PausableUpgradeable
} from "@openzeppelin/contracts-upgradeable/utils/PausableUpgradeable.sol";
import {UUPSUpgradeable} from "@openzeppelin/contracts/proxy/utils/UUPSUpgradeable.sol";
import {IOriginatorSequence} from "../interfaces/IOriginatorSequence.sol";
import {ISequencedLog} from "../interfaces/ISequencedLog.sol";

/// @title SequencedLog
/// @notice The part that GroupMessages and IdentityUpdates share. See ISequencedLog.
abstract contract SequencedLog is
    ISequencedLog,
    AccessControlUpgradeable,
    PausableUpgradeable,
    UUPSUpgradeable
{
    /* STORAGE */

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
    function initialize(address admin) external initializer {
        if (admin == address(0)) revert InvalidAdmin(admin);
        _grantRole(DEFAULT_ADMIN_ROLE, admin);
    }

    /* PAUSING */

    /// @inheritdoc ISequencedLog
    function pause() external onlyRole(DEFAULT_ADMIN_ROLE) {
        _pause();
    }

    /// @inheritdoc ISequencedLog
    function unpause() external onlyRole(DEFAULT_ADMIN_ROLE) {
        _unpause();
    }

    /* INTERNALS */

    function _authorizeUpgrade(address newImplementation)
        internal
        override
        onlyRole(DEFAULT_ADMIN_ROLE)
    {
        address current = address(originatorSequence);
        address proposed = _sequenceOf(newImplementation);
        if (proposed != current) revert OriginatorSequenceChanged(current, proposed);
        emit UpgradeAuthorized(msg.sender, newImplementation);
    }

    function _sequenceOf(address implementation) internal view returns (address sequence) {
        try ISequencedLog(implementation).originatorSequence() returns (IOriginatorSequence found) {
            return address(found);
        } catch {
            return address(0);
        }
    }
}
