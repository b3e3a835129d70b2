// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {NodeRegistry} from "../../contracts/NodeRegistry.sol";
import {INodeRegistry} from "../../contracts/interfaces/INodeRegistry.sol";
import {ISequencedLog} from "../../contracts/interfaces/ISequencedLog.sol";
import {SequencedLogs} from "./support/SequencedLogs.sol";
import {VectorFile} from "./support/VectorFile.sol";
import {Vm} from "./support/Vm.sol";

/// @title VectorsTest
/// @notice The contracts against the vectors of topics, events and keys that Python is held to.
contract VectorsTest is SequencedLogs, VectorFile {
    struct TopicVector {
        uint256 kind;
        bytes32 identifier;
        bytes topic;
    }

    struct PayloadFields {
        bytes32 identifier;
        bytes payload;
        uint256 sequenceId;
    }

    struct PayloadVector {
        PayloadFields fields;
        bytes data;
    }

    struct NodeFields {
        uint256 nodeId;
        INodeRegistry.Node node;
    }

    struct NodeVector {
        NodeFields fields;
        bytes data;
    }

    struct UpgradeFields {
        address upgrader;
        address newImplementation;
    }

    struct UpgradeVector {
        UpgradeFields fields;
        bytes data;
    }

    struct KeyVector {
        string name;
        bytes key;
        bool valid;
    }

    string internal constant TOPIC = "TopicCase(uint256 kind,bytes32 identifier,bytes topic)";
    string internal constant MESSAGE =
        "EventCase(EventFields fields,bytes data)EventFields(bytes32 groupId,bytes message,uint256 sequenceId)";
    string internal constant UPDATE =
        "EventCase(EventFields fields,bytes data)EventFields(bytes32 inboxId,bytes update,uint256 sequenceId)";
    string internal constant NODE =
        "EventCase(EventFields fields,bytes data)EventFields(uint256 nodeId,NodeEntry node)NodeEntry(bytes signingKeyPub,string httpAddress,bool isHealthy)";
    string internal constant UPGRADE =
        "EventCase(EventFields fields,bytes data)EventFields(address upgrader,address newImplementation)";
    string internal constant KEY = "KeyCase(string name,bytes key,bool valid)";

    /// @dev `last` is the sequence's only storage.
    bytes32 internal constant LAST_SLOT = bytes32(0);

    function setUp() public {
        _deployLogs();
        vm.startPrank(admin);
        groupMessages.setPayloadBounds(0, PAYLOAD_SIZE_CAP);
        identityUpdates.setPayloadBounds(0, PAYLOAD_SIZE_CAP);
        vm.stopPrank();
    }

    /* TOPICS */

    function test_topicKind__ofBothContracts__makesTheTopicsOfTheVectors() public view {
        TopicVector[] memory vectors =
            abi.decode(_vectors("topics", ".topics", TOPIC), (TopicVector[]));
        uint256 checked = 0;
        for (uint256 index = 0; index < vectors.length; ++index) {
            uint256 kind = vectors[index].kind;
            if (kind != GROUP_MESSAGE && kind != IDENTITY_UPDATE) continue;
            vm.assertEq(_topicOf(kind, vectors[index].identifier), vectors[index].topic);
            ++checked;
        }
        vm.assertEq(checked, 6);
    }

    /* EVENTS */

    function test_publish__eachCaseOfMessageSent__emitsItsLog() public {
        _assertEmitted(GROUP_MESSAGE, 0, MESSAGE);
    }

    function test_publish__eachCaseOfIdentityUpdateCreated__emitsItsLog() public {
        _assertEmitted(IDENTITY_UPDATE, 1, UPDATE);
    }

    function test_nodeUpdated__eachCase__isEncodedAlike() public view {
        _assertTopic(2, INodeRegistry.NodeUpdated.selector);
        bytes memory encoded = _vectors("events", ".events[2].cases", NODE);
        NodeVector[] memory vectors = abi.decode(encoded, (NodeVector[]));
        for (uint256 index = 0; index < vectors.length; ++index) {
            NodeFields memory fields = vectors[index].fields;
            vm.assertEq(abi.encode(fields.nodeId, fields.node), vectors[index].data);
        }
        vm.assertEq(vectors.length, 6);
    }

    function test_upgradeAuthorized__eachCase__isEncodedAlike() public view {
        _assertTopic(3, ISequencedLog.UpgradeAuthorized.selector);
        bytes memory encoded = _vectors("events", ".events[3].cases", UPGRADE);
        UpgradeVector[] memory vectors = abi.decode(encoded, (UpgradeVector[]));
        for (uint256 index = 0; index < vectors.length; ++index) {
            vm.assertEq(abi.encode(vectors[index].fields), vectors[index].data);
        }
        vm.assertEq(vectors.length, 2);
    }

    /* PUBLIC KEYS */

    function test_addNode__eachKey__isTakenIfValidAndRefusedIfNot() public {
        NodeRegistry registry = new NodeRegistry(owner);
        KeyVector[] memory vectors =
            abi.decode(_vectors("public_keys", ".keys", KEY), (KeyVector[]));
        for (uint256 index = 0; index < vectors.length; ++index) {
            bytes memory call = abi.encodeCall(
                INodeRegistry.addNode, (operator, vectors[index].key, vectors[index].name)
            );
            vm.prank(owner);
            // solhint-disable-next-line avoid-low-level-calls
            (bool accepted,) = address(registry).call(call);
            vm.assertEq(accepted, vectors[index].valid, vectors[index].name);
        }
        vm.assertEq(registry.nodeCount(), 7);
        vm.assertEq(vectors.length, 26);
    }

    /* INTERNALS */

    function _topicOf(uint256 kind, bytes32 identifier) private view returns (bytes memory topic) {
        return abi.encodePacked(uint8(_log(kind).topicKind()), identifier);
    }

    function _assertTopic(uint256 eventIndex, bytes32 topic0) private view {
        string memory key = string.concat(".events[", vm.toString(eventIndex), "].topic0");
        vm.assertEq(vm.parseJsonBytes32(_content("events"), key), topic0);
    }

    function _assertEmitted(uint256 kind, uint256 eventIndex, string memory typeDescription)
        private
    {
        _assertTopic(eventIndex, _publishedTopic(kind));
        string memory key = string.concat(".events[", vm.toString(eventIndex), "].cases");
        PayloadVector[] memory vectors =
            abi.decode(_vectors("events", key, typeDescription), (PayloadVector[]));
        for (uint256 index = 0; index < vectors.length; ++index) {
            PayloadFields memory fields = vectors[index].fields;
            vm.store(address(sequence), LAST_SLOT, bytes32(fields.sequenceId - 1));
            vm.recordLogs();
            _publish(kind, publisher, fields.identifier, fields.payload);
            Vm.Log[] memory logs = vm.getRecordedLogs();
            vm.assertEq(logs.length, 1);
            vm.assertEq(logs[0].topics.length, 1);
            vm.assertEq(logs[0].topics[0], _publishedTopic(kind));
            vm.assertEq(logs[0].data, vectors[index].data);
        }
        vm.assertEq(vectors.length, 9);
    }
}
