// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {SequencedLog} from "../../../contracts/base/SequencedLog.sol";
import {IOriginatorSequence} from "../../../contracts/interfaces/IOriginatorSequence.sol";
import {SequencedLogs} from "./SequencedLogs.sol";

/// @title SequencedLogSuite
/// @notice A suite over one of the two payload contracts: the tests are the same for both, and a
/// concrete contract names the topic kind.
abstract contract SequencedLogSuite is SequencedLogs {
    bytes32 internal constant IDENTIFIER = keccak256("identifier");

    uint256 internal immutable kind;
    uint256 internal immutable siblingKind;

    SequencedLog internal log;

    constructor(uint256 kind_) {
        kind = kind_;
        siblingKind = kind_ == GROUP_MESSAGE ? IDENTITY_UPDATE : GROUP_MESSAGE;
    }

    function setUp() public virtual {
        _deployLogs();
        log = _log(kind);
    }

    function _newImplementation() internal returns (address implementation) {
        return _newImplementation(kind, IOriginatorSequence(sequence));
    }

    function _grantSecondAdmin() internal {
        vm.prank(admin);
        log.grantRole(DEFAULT_ADMIN_ROLE, secondAdmin);
    }

    function _members() internal view returns (address[] memory members) {
        return log.getRoleMembers(DEFAULT_ADMIN_ROLE);
    }
}
