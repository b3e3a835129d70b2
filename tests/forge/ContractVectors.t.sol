// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {NodeRegistry} from "../../contracts/NodeRegistry.sol";
import {IGroupMessages} from "../../contracts/interfaces/IGroupMessages.sol";
import {IIdentityUpdates} from "../../contracts/interfaces/IIdentityUpdates.sol";
import {INodeRegistry} from "../../contracts/interfaces/INodeRegistry.sol";
import {IOriginatorSequence} from "../../contracts/interfaces/IOriginatorSequence.sol";
import {ISequencedLog} from "../../contracts/interfaces/ISequencedLog.sol";
import {SequencedLogs} from "./support/SequencedLogs.sol";
import {VectorFile} from "./support/VectorFile.sol";
import {Vm} from "./support/Vm.sol";

/// @title ContractVectorsTest
/// @notice The contracts against tests/vectors/contracts.json: the same calls in the same order give
/// the ids, hashes and logs that tests/unit/contracts/test_contract_vectors.py reads.
contract ContractVectorsTest is SequencedLogs, VectorFile {
    struct PublicationVector {
        uint256 kind;
        bytes32 identifier;
        bytes payload;
        uint256 sequenceId;
        bytes topic;
        bytes32 topic0;
        bytes data;
    }

    struct NodeVector {
        uint256 nodeId;
        address holder;
        bytes signingKeyPub;
        address keyAddress;
        string httpAddress;
        bytes data;
    }

    struct EventVector {
        string signature;
        bytes32 topic0;
    }

    struct ErrorVector {
        string signature;
        bytes selector;
    }

    string internal constant PUBLICATION =
        "PublicationCase(uint256 kind,bytes32 identifier,bytes payload,uint256 sequenceId,bytes topic,bytes32 topic0,bytes data)";
    string internal constant NODE =
        "AddedNodeCase(uint256 nodeId,address holder,bytes signingKeyPub,address keyAddress,string httpAddress,bytes data)";
    string internal constant EVENT = "EventCase(string signature,bytes32 topic0)";
    string internal constant ERROR = "ErrorCase(string signature,bytes selector)";

    /// @dev Where the pause and both bounds stand within their one slot, in bits.
    uint256 internal constant MINIMUM_OFFSET = 8;
    uint256 internal constant MAXIMUM_OFFSET = 40;

    /// @dev Which of the logs of addNode is NodeUpdated: the last.
    uint256 internal constant NODE_UPDATED = 2;

    function setUp() public {
        _deployLogs();
    }

    /* PAYLOADS */

    function test_publish__eachPublicationInOrder__getsItsIdTopicAndLog() public {
        bytes memory encoded = _vectors("contracts", ".publications", PUBLICATION);
        PublicationVector[] memory vectors = abi.decode(encoded, (PublicationVector[]));
        for (uint256 index = 0; index < vectors.length; ++index) {
            _assertPublished(vectors[index]);
        }
        vm.assertEq(sequence.last(), 6);
        vm.assertEq(vectors.length, 6);
    }

    function _assertPublished(PublicationVector memory vector) private {
        vm.recordLogs();
        _publish(vector.kind, publisher, vector.identifier, vector.payload);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        uint8 topicKind = uint8(_log(vector.kind).topicKind());
        vm.assertEq(sequence.last(), vector.sequenceId);
        vm.assertEq(abi.encodePacked(topicKind, vector.identifier), vector.topic);
        vm.assertEq(logs[0].topics[0], vector.topic0);
        vm.assertEq(logs[0].data, vector.data);
    }

    /* NODES */

    function test_addNode__eachNodeInOrder__getsItsIdAddressAndLog() public {
        NodeRegistry registry = new NodeRegistry(owner);
        NodeVector[] memory vectors =
            abi.decode(_vectors("contracts", ".nodes", NODE), (NodeVector[]));
        for (uint256 index = 0; index < vectors.length; ++index) {
            _assertAdded(registry, vectors[index]);
        }
        vm.assertEq(registry.nodeCount(), 3);
    }

    function _assertAdded(NodeRegistry registry, NodeVector memory vector) private {
        vm.recordLogs();
        vm.prank(owner);
        uint256 nodeId = registry.addNode(vector.holder, vector.signingKeyPub, vector.httpAddress);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        vm.assertEq(nodeId, vector.nodeId);
        vm.assertEq(registry.nodeByKeyAddress(vector.keyAddress).nodeId, nodeId);
        vm.assertEq(logs[NODE_UPDATED].topics[0], INodeRegistry.NodeUpdated.selector);
        vm.assertEq(logs[NODE_UPDATED].data, vector.data);
    }

    /* STORAGE */

    function test_settings__ofBothContracts__areInTheSlotOfTheirNamespace() public {
        bytes32 slot = vm.parseJsonBytes32(_content("contracts"), ".storageSlots[0].slot");
        vm.startPrank(admin);
        groupMessages.pause();
        identityUpdates.setPayloadBounds(7, PAYLOAD_SIZE_CAP);
        vm.stopPrank();
        bytes32 paused = _packed(1, MIN_PAYLOAD_SIZE, MAX_PAYLOAD_SIZE);
        bytes32 bounded = _packed(0, 7, PAYLOAD_SIZE_CAP);
        vm.assertEq(vm.load(address(groupMessages), slot), paused);
        vm.assertEq(vm.load(address(identityUpdates), slot), bounded);
    }

    function test_implementation__ofAProxy__isInTheSlotOfErc1967() public view {
        bytes32 slot = vm.parseJsonBytes32(_content("contracts"), ".storageSlots[1].slot");
        address implementation = address(uint160(uint256(vm.load(address(groupMessages), slot))));
        vm.assertEq(implementation, _implementationOf(groupMessages));
        vm.assertGt(implementation.code.length, 0, "no code there");
    }

    function _packed(uint256 paused, uint256 minimum, uint256 maximum)
        private
        pure
        returns (bytes32 word)
    {
        return bytes32(paused | (minimum << MINIMUM_OFFSET) | (maximum << MAXIMUM_OFFSET));
    }

    /* INTERFACES */

    function test_events__inTheOrderOfTheVectors__haveTheirTopics() public view {
        bytes32[12] memory topics = [
            IGroupMessages.MessageSent.selector,
            IIdentityUpdates.IdentityUpdateCreated.selector,
            ISequencedLog.UpgradeAuthorized.selector,
            ISequencedLog.Paused.selector,
            ISequencedLog.Unpaused.selector,
            ISequencedLog.PayloadBoundsSet.selector,
            INodeRegistry.NodeUpdated.selector,
            INodeRegistry.NodeAdded.selector,
            INodeRegistry.NodeHealthUpdated.selector,
            INodeRegistry.NodeTransferred.selector,
            INodeRegistry.NodeHttpAddressUpdated.selector,
            INodeRegistry.HttpAddressUpdatesOpenChanged.selector
        ];
        EventVector[] memory vectors =
            abi.decode(_vectors("contracts", ".events", EVENT), (EventVector[]));
        vm.assertEq(vectors.length, topics.length);
        for (uint256 index = 0; index < topics.length; ++index) {
            vm.assertEq(topics[index], vectors[index].topic0, vectors[index].signature);
        }
    }

    function test_errors__inTheOrderOfTheVectors__haveTheirSelectors() public view {
        bytes4[22] memory selectors = [
            IOriginatorSequence.InvalidSequenceCallers.selector,
            IOriginatorSequence.UnauthorizedSequenceCaller.selector,
            ISequencedLog.InvalidOriginatorSequence.selector,
            ISequencedLog.OriginatorSequenceChanged.selector,
            ISequencedLog.TopicKindChanged.selector,
            ISequencedLog.InvalidAdmin.selector,
            ISequencedLog.LastAdmin.selector,
            ISequencedLog.EnforcedPause.selector,
            ISequencedLog.ExpectedPause.selector,
            ISequencedLog.PayloadSizeOutOfBounds.selector,
            ISequencedLog.InvalidPayloadBounds.selector,
            INodeRegistry.InvalidSigningKeyLength.selector,
            INodeRegistry.InvalidSigningKeyPrefix.selector,
            INodeRegistry.SigningKeyNotOnCurve.selector,
            INodeRegistry.SigningKeyAlreadyUsed.selector,
            INodeRegistry.UnknownSigningKey.selector,
            INodeRegistry.EmptyHttpAddress.selector,
            INodeRegistry.HttpAddressTooLong.selector,
            INodeRegistry.HttpAddressUpdatesClosed.selector,
            INodeRegistry.NotNodeHolder.selector,
            INodeRegistry.ApprovalsDisabled.selector,
            INodeRegistry.RenouncingDisabled.selector
        ];
        ErrorVector[] memory vectors =
            abi.decode(_vectors("contracts", ".errors", ERROR), (ErrorVector[]));
        vm.assertEq(vectors.length, selectors.length);
        for (uint256 index = 0; index < selectors.length; ++index) {
            bytes memory selector = abi.encodePacked(selectors[index]);
            vm.assertEq(selector, vectors[index].selector, vectors[index].signature);
        }
    }
}
