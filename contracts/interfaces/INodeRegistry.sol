// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

/// @title INodeRegistry
/// @notice The source of truth for the nodes of the network (XIP-49 §2.2.1 read with §3.1.1). Each
/// node is an NFT held by its operator; only the contract's owner adds, enables, disables and
/// transfers nodes.
/// @dev Nodes are never removed. A node that needs another key or address is disabled and added
/// again, with a new id and a key never used before.
/// Ownership follows OpenZeppelin's Ownable2Step, where the prototype has Ownable: a new owner has
/// to accept it, so that a mistyped address cannot take it. It cannot be renounced: without an owner
/// nobody could ever disable a node.
/// Every change emits who made it, beside the NodeUpdated of XIP-49, which does not say.
interface INodeRegistry {
    /// @notice What the registry says about a node.
    /// @param signingKeyPub The node's secp256k1 public key: 65 bytes, 0x04, X, Y. Never changes.
    /// @param httpAddress The node's entry point. Changes only while the owner has opened updates.
    /// @param isHealthy Whether the node is enabled.
    struct Node {
        bytes signingKeyPub;
        string httpAddress;
        bool isHealthy;
    }

    /// @notice A node beside its id.
    /// @param nodeId The node's id, which is also its token id and its originator id.
    /// @param node What the registry says about it.
    struct NodeWithId {
        uint32 nodeId;
        Node node;
    }

    // NodeUpdated is unindexed as in XIP-49: indexing would move values out of the log's data. In the
    // other events the account and the node are indexed, which is what people search for.
    // solhint-disable gas-indexed-events

    /// @notice Emitted when a node was added or changed.
    /// @param nodeId The node's id.
    /// @param node The node after the change.
    event NodeUpdated(uint256 nodeId, Node node);

    /// @notice Emitted when a node was added.
    /// @param account The registry's owner, who added it.
    /// @param nodeId The new id.
    /// @param holder The node's operator.
    event NodeAdded(address indexed account, uint256 indexed nodeId, address indexed holder);

    /// @notice Emitted when a node was enabled or disabled, or told again to be what it was.
    /// @param account The registry's owner, who did it.
    /// @param nodeId The node's id.
    /// @param isHealthy Whether the node is enabled from now on.
    event NodeHealthUpdated(address indexed account, uint256 indexed nodeId, bool isHealthy);

    /// @notice Emitted when a node went to another holder, after ERC-721's Transfer.
    /// @param account The registry's owner, who did it.
    /// @param nodeId The node's id.
    /// @param to The node's new holder.
    event NodeTransferred(address indexed account, uint256 indexed nodeId, address indexed to);

    /// @notice Emitted when a node's HTTP address was changed.
    /// @param account The node's holder, who did it.
    /// @param nodeId The node's id.
    /// @param httpAddress The new entry point.
    event NodeHttpAddressUpdated(
        address indexed account, uint256 indexed nodeId, string httpAddress
    );

    /// @notice Emitted when the owner opened or closed operators' address updates.
    /// @param account The registry's owner, who did it.
    /// @param open Whether holders may change their node's HTTP address from now on.
    event HttpAddressUpdatesOpenChanged(address indexed account, bool open);

    /// @notice A signing key must be 65 bytes long.
    /// @param length The length given, in bytes.
    error InvalidSigningKeyLength(uint256 length);

    /// @notice A signing key must begin with 0x04.
    /// @param prefix The first byte given.
    error InvalidSigningKeyPrefix(bytes1 prefix);

    /// @notice A signing key must be a point of secp256k1.
    /// @param x The X coordinate given.
    /// @param y The Y coordinate given.
    error SigningKeyNotOnCurve(uint256 x, uint256 y);

    /// @notice A signing key belongs to one node for ever, also after the node was disabled.
    /// @param nodeId The node that has the key.
    error SigningKeyAlreadyUsed(uint256 nodeId);

    /// @notice No node ever had this signing key.
    /// @param keyAddress The key's address.
    error UnknownSigningKey(address keyAddress);

    /// @notice An HTTP address must not be empty.
    error EmptyHttpAddress();

    /// @notice An HTTP address must not be longer than `maxHttpAddressLength`.
    /// @param length The length given, in bytes.
    /// @param maximum The greatest length, in bytes.
    error HttpAddressTooLong(uint256 length, uint256 maximum);

    /// @notice Holders may not change HTTP addresses now.
    /// @param nodeId The node whose address was to change.
    error HttpAddressUpdatesClosed(uint256 nodeId);

    /// @notice Only the holder of a node may do this.
    /// @param nodeId The node.
    /// @param caller The address that called.
    error NotNodeHolder(uint256 nodeId, address caller);

    /// @notice Nodes have no approved spenders: only the contract's owner transfers.
    /// @param spender The address that was to be approved.
    error ApprovalsDisabled(address spender);

    /// @notice The registry cannot be left without an owner.
    error RenouncingDisabled();

    /// @notice Adds an enabled node and mints its token. Only callable by the owner.
    /// @dev The token is minted without asking `to`, also if `to` is a contract.
    /// @param to The node's operator.
    /// @param signingKeyPub The node's public key: uncompressed, valid and never used before.
    /// @param httpAddress The node's entry point: 1 to `maxHttpAddressLength` bytes.
    /// @return nodeId The new id: 100, 200, 300, …
    function addNode(address to, bytes calldata signingKeyPub, string calldata httpAddress)
        external
        returns (uint32 nodeId);

    /// @notice Enables or disables a node. Only callable by the owner.
    /// @param tokenId The node's id.
    /// @param isHealthy Whether the node is enabled from now on.
    function updateHealth(uint256 tokenId, bool isHealthy) external;

    /// @notice Changes a node's HTTP address. Only callable by the node's holder, and only while the
    /// owner has opened updates (closed at first: XIP-49 §3.1.1).
    /// @param tokenId The node's id.
    /// @param httpAddress The new entry point: 1 to `maxHttpAddressLength` bytes.
    function updateHttpAddress(uint256 tokenId, string calldata httpAddress) external;

    /// @notice Opens or closes operators' address updates. Only callable by the owner.
    /// @param open Whether holders may change their node's HTTP address from now on.
    function setHttpAddressUpdatesOpen(bool open) external;

    /// @notice Whether holders may change their node's HTTP address.
    /// @return open False until the owner opens updates.
    function httpAddressUpdatesOpen() external view returns (bool open);

    /// @notice The greatest length of an HTTP address.
    /// @return length In bytes.
    function maxHttpAddressLength() external pure returns (uint256 length);

    /// @notice How many nodes there are.
    /// @return count The number of nodes ever added, enabled or not.
    function nodeCount() external view returns (uint256 count);

    /// @notice A node's entry. Reverts if the node does not exist.
    /// @param tokenId The node's id.
    /// @return node What the registry says about it.
    function getNode(uint256 tokenId) external view returns (Node memory node);

    /// @notice The node that has a signing key. Reverts if none ever had, or if it is no valid key.
    /// @dev A disabled node keeps its key: look at `isHealthy`.
    /// @param signingKeyPub The public key: 65 bytes, 0x04, X, Y.
    /// @return node The node and its id.
    function nodeBySigningKey(bytes calldata signingKeyPub)
        external
        view
        returns (NodeWithId memory node);

    /// @notice The node whose signing key has an address, which is what recovering a signature
    /// gives. Reverts if none ever had.
    /// @dev A disabled node keeps its key: look at `isHealthy`.
    /// @param keyAddress The last 20 bytes of keccak256(X, Y).
    /// @return node The node and its id.
    function nodeByKeyAddress(address keyAddress) external view returns (NodeWithId memory node);

    /// @notice All nodes, in the order of their ids.
    /// @dev Costs grow with the registry: read it off chain, or use `nodesPage`.
    /// @return nodes Every node ever added, enabled or not.
    function allNodes() external view returns (NodeWithId[] memory nodes);

    /// @notice The enabled nodes, in the order of their ids.
    /// @dev Costs grow with the registry: read it off chain, or use `nodesPage`.
    /// @return nodes The nodes which are enabled now.
    function healthyNodes() external view returns (NodeWithId[] memory nodes);

    /// @notice A page of all nodes, in the order of their ids.
    /// @param offset The number of nodes to leave out; beyond the end the page is empty.
    /// @param limit The most nodes to return; the last page is shorter.
    /// @return nodes At most `limit` nodes, enabled or not.
    function nodesPage(uint256 offset, uint256 limit)
        external
        view
        returns (NodeWithId[] memory nodes);

    /// @notice The enabled nodes of a page, in the order of their ids.
    /// @dev Looks at the same nodes as `nodesPage`, so that paging by `limit` meets every node once
    /// and costs no more in a larger registry.
    /// @param offset The number of nodes to leave out, enabled or not.
    /// @param limit The most nodes to look at, enabled or not.
    /// @return nodes Those of them which are enabled now; an empty page need not be the last.
    function healthyNodesPage(uint256 offset, uint256 limit)
        external
        view
        returns (NodeWithId[] memory nodes);
}
