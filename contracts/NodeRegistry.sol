// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {Ownable2Step} from "@openzeppelin/contracts/access/Ownable2Step.sol";
import {IERC721} from "@openzeppelin/contracts/token/ERC721/IERC721.sol";
import {ERC721} from "@openzeppelin/contracts/token/ERC721/ERC721.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {INodeRegistry} from "./interfaces/INodeRegistry.sol";

/// @title NodeRegistry
/// @notice The nodes of the network. See INodeRegistry.
contract NodeRegistry is INodeRegistry, ERC721, Ownable2Step {
    /* CONSTANTS */

    uint32 private constant NODE_INCREMENT = 100;
    uint256 private constant SIGNING_KEY_LENGTH = 65;
    bytes1 private constant UNCOMPRESSED_POINT_PREFIX = 0x04;
    uint256 private constant MAX_HTTP_ADDRESS_LENGTH = 512;

    /// @dev The prime of the field over which secp256k1 (y² = x³ + 7) is defined.
    uint256 private constant FIELD_PRIME =
        0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEFFFFFC2F;

    /* STORAGE */

    /// @inheritdoc INodeRegistry
    bool public httpAddressUpdatesOpen;

    uint32 private _nodeCounter;

    mapping(uint256 nodeId => Node) private _nodes;

    /// @dev Entries are never deleted, so that a key cannot come back under another id.
    mapping(address keyAddress => uint32 nodeId) private _nodeIdOfKey;

    /* CONSTRUCTOR */

    /// @notice Makes an empty registry with operators' address updates closed.
    /// @param owner_ The only account that may add, enable, disable and transfer nodes.
    constructor(address owner_) ERC721("XMTP Node Operator", "XMTP") Ownable(owner_) {}

    /* NODES */

    /// @inheritdoc INodeRegistry
    function addNode(address to, bytes calldata signingKeyPub, string calldata httpAddress)
        external
        onlyOwner
        returns (uint32 nodeId)
    {
        _requirePublicKey(signingKeyPub);
        _requireHttpAddress(httpAddress);
        nodeId = ++_nodeCounter * NODE_INCREMENT;
        _claimSigningKey(signingKeyPub, nodeId);
        _nodes[nodeId] = Node(signingKeyPub, httpAddress, true);
        _mint(to, nodeId);
        emit NodeAdded(msg.sender, nodeId, to);
        _emitNodeUpdated(nodeId);
    }

    /// @inheritdoc INodeRegistry
    function updateHealth(uint256 tokenId, bool isHealthy) external onlyOwner {
        _requireOwned(tokenId);
        _nodes[tokenId].isHealthy = isHealthy;
        emit NodeHealthUpdated(msg.sender, tokenId, isHealthy);
        _emitNodeUpdated(tokenId);
    }

    /* HTTP ADDRESSES */

    /// @inheritdoc INodeRegistry
    function setHttpAddressUpdatesOpen(bool open) external onlyOwner {
        httpAddressUpdatesOpen = open;
        emit HttpAddressUpdatesOpenChanged(msg.sender, open);
    }

    /// @inheritdoc INodeRegistry
    function updateHttpAddress(uint256 tokenId, string calldata httpAddress) external {
        if (!httpAddressUpdatesOpen) revert HttpAddressUpdatesClosed(tokenId);
        if (msg.sender != ownerOf(tokenId)) revert NotNodeHolder(tokenId, msg.sender);
        _requireHttpAddress(httpAddress);
        _nodes[tokenId].httpAddress = httpAddress;
        emit NodeHttpAddressUpdated(msg.sender, tokenId, httpAddress);
        _emitNodeUpdated(tokenId);
    }

    /// @inheritdoc INodeRegistry
    function maxHttpAddressLength() external pure returns (uint256 length) {
        return MAX_HTTP_ADDRESS_LENGTH;
    }

    /* TRANSFERS */

    /// @inheritdoc IERC721
    /// @dev Both `safeTransferFrom` end here, so that the owner's check covers every path.
    function transferFrom(address from, address to, uint256 tokenId)
        public
        override(ERC721)
        onlyOwner
    {
        _transfer(from, to, tokenId);
        emit NodeTransferred(msg.sender, tokenId, to);
    }

    /// @inheritdoc IERC721
    function approve(address to, uint256) public pure override(ERC721) {
        revert ApprovalsDisabled(to);
    }

    /// @inheritdoc IERC721
    function setApprovalForAll(address operator, bool) public pure override(ERC721) {
        revert ApprovalsDisabled(operator);
    }

    /* OWNERSHIP */

    /// @notice Always reverts. See INodeRegistry.
    function renounceOwnership() public pure override {
        revert RenouncingDisabled();
    }

    /* LOOK-UPS */

    /// @inheritdoc INodeRegistry
    function getNode(uint256 tokenId) external view returns (Node memory node) {
        _requireOwned(tokenId);
        return _nodes[tokenId];
    }

    /// @inheritdoc INodeRegistry
    function nodeBySigningKey(bytes calldata signingKeyPub)
        external
        view
        returns (NodeWithId memory node)
    {
        _requirePublicKey(signingKeyPub);
        return nodeByKeyAddress(_addressOf(signingKeyPub));
    }

    /// @inheritdoc INodeRegistry
    function nodeByKeyAddress(address keyAddress) public view returns (NodeWithId memory node) {
        uint32 nodeId = _nodeIdOfKey[keyAddress];
        if (nodeId == 0) revert UnknownSigningKey(keyAddress);
        return NodeWithId(nodeId, _nodes[nodeId]);
    }

    /* LISTINGS */

    /// @inheritdoc INodeRegistry
    function nodeCount() external view returns (uint256 count) {
        return _nodeCounter;
    }

    /// @inheritdoc INodeRegistry
    function allNodes() external view returns (NodeWithId[] memory nodes) {
        return nodesPage(0, _nodeCounter);
    }

    /// @inheritdoc INodeRegistry
    function healthyNodes() external view returns (NodeWithId[] memory nodes) {
        return healthyNodesPage(0, _nodeCounter);
    }

    /// @inheritdoc INodeRegistry
    function nodesPage(uint256 offset, uint256 limit)
        public
        view
        returns (NodeWithId[] memory nodes)
    {
        (uint256 start, uint256 end) = _range(offset, limit);
        nodes = new NodeWithId[](end - start);
        for (uint256 index = start; index < end; ++index) {
            nodes[index - start] = _nodeAt(index);
        }
    }

    /// @inheritdoc INodeRegistry
    function healthyNodesPage(uint256 offset, uint256 limit)
        public
        view
        returns (NodeWithId[] memory nodes)
    {
        (uint256 start, uint256 end) = _range(offset, limit);
        nodes = new NodeWithId[](_healthyCount(start, end));
        uint256 found = 0;
        for (uint256 index = start; index < end; ++index) {
            if (!_nodes[_nodeIdAt(index)].isHealthy) continue;
            nodes[found] = _nodeAt(index);
            ++found;
        }
    }

    /* INTERNALS */

    function _claimSigningKey(bytes calldata signingKeyPub, uint32 nodeId) internal {
        address keyAddress = _addressOf(signingKeyPub);
        uint256 holder = _nodeIdOfKey[keyAddress];
        if (holder != 0) revert SigningKeyAlreadyUsed(holder);
        _nodeIdOfKey[keyAddress] = nodeId;
    }

    function _emitNodeUpdated(uint256 tokenId) internal {
        emit NodeUpdated(tokenId, _nodes[tokenId]);
    }

    /// @dev The part of a page that exists, as indices; `limit` may be anything.
    function _range(uint256 offset, uint256 limit)
        internal
        view
        returns (uint256 start, uint256 end)
    {
        start = Math.min(offset, _nodeCounter);
        end = start + Math.min(limit, _nodeCounter - start);
    }

    function _healthyCount(uint256 start, uint256 end) internal view returns (uint256 count) {
        for (uint256 index = start; index < end; ++index) {
            if (_nodes[_nodeIdAt(index)].isHealthy) ++count;
        }
    }

    function _nodeAt(uint256 index) internal view returns (NodeWithId memory node) {
        uint32 nodeId = _nodeIdAt(index);
        return NodeWithId(nodeId, _nodes[nodeId]);
    }

    function _nodeIdAt(uint256 index) internal pure returns (uint32 nodeId) {
        // The cast is safe because an index is below _nodeCounter, a uint32.
        // forge-lint: disable-next-line(unsafe-typecast)
        return (uint32(index) + 1) * NODE_INCREMENT;
    }

    function _requireHttpAddress(string calldata httpAddress) internal pure {
        uint256 length = bytes(httpAddress).length;
        if (length == 0) revert EmptyHttpAddress();
        if (length > MAX_HTTP_ADDRESS_LENGTH) {
            revert HttpAddressTooLong(length, MAX_HTTP_ADDRESS_LENGTH);
        }
    }

    function _requirePublicKey(bytes calldata signingKeyPub) internal pure {
        if (signingKeyPub.length != SIGNING_KEY_LENGTH) {
            revert InvalidSigningKeyLength(signingKeyPub.length);
        }
        if (signingKeyPub[0] != UNCOMPRESSED_POINT_PREFIX) {
            revert InvalidSigningKeyPrefix(signingKeyPub[0]);
        }
        uint256 x = uint256(bytes32(signingKeyPub[1:33]));
        uint256 y = uint256(bytes32(signingKeyPub[33:65]));
        if (!_isOnCurve(x, y)) revert SigningKeyNotOnCurve(x, y);
    }

    /// @dev The address of a valid key: the last 20 bytes of keccak256(X, Y).
    function _addressOf(bytes calldata signingKeyPub) internal pure returns (address keyAddress) {
        return address(uint160(uint256(keccak256(signingKeyPub[1:]))));
    }

    /// @dev Coordinates of the field's prime or more would name a point a second time.
    function _isOnCurve(uint256 x, uint256 y) internal pure returns (bool) {
        uint256 cube = mulmod(mulmod(x, x, FIELD_PRIME), x, FIELD_PRIME);
        return x < FIELD_PRIME && y < FIELD_PRIME
            && mulmod(y, y, FIELD_PRIME) == addmod(cube, 7, FIELD_PRIME);
    }
}
