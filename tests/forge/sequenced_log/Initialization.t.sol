// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {ERC1967Proxy} from "@openzeppelin/contracts/proxy/ERC1967/ERC1967Proxy.sol";
import {ERC1967Utils} from "@openzeppelin/contracts/proxy/ERC1967/ERC1967Utils.sol";
import {Initializable} from "@openzeppelin/contracts/proxy/utils/Initializable.sol";
import {SequencedLogProxy} from "../../../contracts/SequencedLogProxy.sol";
import {SequencedLog} from "../../../contracts/base/SequencedLog.sol";
import {IOriginatorSequence} from "../../../contracts/interfaces/IOriginatorSequence.sol";
import {ISequencedLog} from "../../../contracts/interfaces/ISequencedLog.sol";
import {SequencedLogSuite} from "../support/SequencedLogSuite.sol";

abstract contract InitializationTest is SequencedLogSuite {
    /* IMPLEMENTATION */

    function test_construct__sequenceWithoutCode__reverts() public {
        vm.expectRevert(
            abi.encodeWithSelector(ISequencedLog.InvalidOriginatorSequence.selector, stranger)
        );
        _newImplementation(kind, IOriginatorSequence(stranger));
    }

    function test_initialize__implementationItself__reverts() public {
        SequencedLog implementation = SequencedLog(_newImplementation());
        vm.expectRevert(abi.encodeWithSelector(Initializable.InvalidInitialization.selector));
        implementation.initialize(stranger, MIN_PAYLOAD_SIZE, MAX_PAYLOAD_SIZE);
    }

    /* PROXY */

    function test_deployProxy__valid__namesAdminAndBoundsAndNothingForTheDeployer() public view {
        (uint32 minimum, uint32 maximum) = log.payloadBounds();
        vm.assertEq(minimum, MIN_PAYLOAD_SIZE);
        vm.assertEq(maximum, MAX_PAYLOAD_SIZE);
        vm.assertEq(log.getRoleMemberCount(DEFAULT_ADMIN_ROLE), 1);
        vm.assertEq(log.getRoleMember(DEFAULT_ADMIN_ROLE, 0), admin);
        vm.assertFalse(log.hasRole(DEFAULT_ADMIN_ROLE, address(this)));
        vm.assertFalse(log.paused());
    }

    function test_deployProxy__valid__knowsItsKindItsCapAndTheSequence() public view {
        vm.assertEq(log.topicKind(), kind);
        vm.assertEq(log.payloadSizeCap(), PAYLOAD_SIZE_CAP);
        vm.assertEq(address(log.originatorSequence()), address(sequence));
        vm.assertEq(log.lastSequenceId(), 0);
    }

    function test_deployProxy__valid__emitsTheBoundsWithItsDeployer() public {
        address implementation = _newImplementation();
        vm.expectEmit(_nextContract());
        emit ISequencedLog.PayloadBoundsSet(address(this), MIN_PAYLOAD_SIZE, MAX_PAYLOAD_SIZE);
        _deploy(implementation, admin, MIN_PAYLOAD_SIZE, MAX_PAYLOAD_SIZE);
    }

    function test_deployProxy__noInitialization__reverts() public {
        address implementation = _newImplementation();
        vm.expectRevert(abi.encodeWithSelector(ERC1967Proxy.ERC1967ProxyUninitialized.selector));
        new SequencedLogProxy(implementation, "");
    }

    function test_deployProxy__implementationWithoutCode__reverts() public {
        vm.expectRevert(
            abi.encodeWithSelector(ERC1967Utils.ERC1967InvalidImplementation.selector, stranger)
        );
        _deploy(stranger, admin, MIN_PAYLOAD_SIZE, MAX_PAYLOAD_SIZE);
    }

    function test_deployProxy__zeroAdmin__reverts() public {
        address implementation = _newImplementation();
        vm.expectRevert(abi.encodeWithSelector(ISequencedLog.InvalidAdmin.selector, address(0)));
        _deploy(implementation, address(0), MIN_PAYLOAD_SIZE, MAX_PAYLOAD_SIZE);
    }

    function test_deployProxy__itselfAsAdmin__reverts() public {
        address implementation = _newImplementation();
        address proxy = _nextContract();
        vm.expectRevert(abi.encodeWithSelector(ISequencedLog.InvalidAdmin.selector, proxy));
        _deploy(implementation, proxy, MIN_PAYLOAD_SIZE, MAX_PAYLOAD_SIZE);
    }

    function test_deployProxy__boundsAboveTheCap__reverts() public {
        address implementation = _newImplementation();
        uint32 above = PAYLOAD_SIZE_CAP + 1;
        vm.expectRevert(
            abi.encodeWithSelector(
                ISequencedLog.InvalidPayloadBounds.selector, 0, above, PAYLOAD_SIZE_CAP
            )
        );
        _deploy(implementation, admin, 0, above);
    }

    function testFuzz_initialize__secondTime__reverts(address caller) public {
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(Initializable.InvalidInitialization.selector));
        log.initialize(caller, MIN_PAYLOAD_SIZE, MAX_PAYLOAD_SIZE);
    }

    /* INTERNALS */

    function _nextContract() private view returns (address created) {
        return vm.computeCreateAddress(address(this), vm.getNonce(address(this)));
    }

    function _deploy(address implementation, address firstAdmin, uint32 minimum, uint32 maximum)
        private
    {
        bytes memory initialization = _initialization(firstAdmin, minimum, maximum);
        new SequencedLogProxy(implementation, initialization);
    }
}

contract GroupMessagesInitializationTest is InitializationTest {
    constructor() SequencedLogSuite(GROUP_MESSAGE) {}
}

contract IdentityUpdatesInitializationTest is InitializationTest {
    constructor() SequencedLogSuite(IDENTITY_UPDATE) {}
}
