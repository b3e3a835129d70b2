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

    /// @dev The prime of the field over which secp256k1 (y² = x³ + 7) is defined.
    uint256 private constant FIELD_PRIME =
        0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEFFFFFC2F;

    /* STORAGE */

    /// @inheritdoc INodeRegistry
    bool public httpAddressUpdatesOpen;

    uint32 private _nodeCounter;

    mapping(uint256 nodeId => Node) private _nodes;

    /// @dev Entries are never deleted, so that a key cannot come back under another id.
    mapping(bytes32 signingKeyHash => uint256 nodeId) private _nodeIdOfKey;

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
        _emitNodeUpdated(nodeId);
    }

    /// @inheritdoc INodeRegistry
    function updateHealth(uint256 tokenId, bool isHealthy) external onlyOwner {
        _requireOwned(tokenId);
        _nodes[tokenId].isHealthy = isHealthy;
        _emitNodeUpdated(tokenId);
    }

    /* HTTP ADDRESSES */

    /// @inheritdoc INodeRegistry
    function setHttpAddressUpdatesOpen(bool open) external onlyOwner {
        httpAddressUpdatesOpen = open;
        emit HttpAddressUpdatesOpenChanged(open);
    }

    /// @inheritdoc INodeRegistry
    function updateHttpAddress(uint256 tokenId, string calldata httpAddress) external {
        if (!httpAddressUpdatesOpen) revert HttpAddressUpdatesClosed(tokenId);
        if (msg.sender != ownerOf(tokenId)) revert NotNodeHolder(tokenId, msg.sender);
        _requireHttpAddress(httpAddress);
        _nodes[tokenId].httpAddress = httpAddress;
        _emitNodeUpdated(tokenId);
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

    /* LISTINGS */

    /// @inheritdoc INodeRegistry
    function nodeCount() external view returns (uint256 count) {
        return _nodeCounter;
    }

    /// @inheritdoc INodeRegistry
    function getNode(uint256 tokenId) external view returns (Node memory node) {
        _requireOwned(tokenId);
        return _nodes[tokenId];
    }

    /// @inheritdoc INodeRegistry
    function allNodes() external view returns (NodeWithId[] memory nodes) {
        return _page(0, _nodeCounter);
    }

    /// @inheritdoc INodeRegistry
    function healthyNodes() external view returns (NodeWithId[] memory nodes) {
        nodes = new NodeWithId[](_healthyCount());
        uint256 found = 0;
        for (uint32 index = 0; index < _nodeCounter; ++index) {
            uint32 nodeId = _nodeIdAt(index);
            if (!_nodes[nodeId].isHealthy) continue;
            nodes[found] = NodeWithId(nodeId, _nodes[nodeId]);
            ++found;
        }
    }

    /// @inheritdoc INodeRegistry
    function nodesPage(uint256 offset, uint256 limit)
        external
        view
        returns (NodeWithId[] memory nodes)
    {
        return _page(offset, limit);
    }

    /* INTERNALS */

    function _claimSigningKey(bytes calldata signingKeyPub, uint32 nodeId) internal {
        bytes32 keyHash = keccak256(signingKeyPub);
        uint256 holder = _nodeIdOfKey[keyHash];
        if (holder != 0) revert SigningKeyAlreadyUsed(holder);
        _nodeIdOfKey[keyHash] = nodeId;
    }

    function _emitNodeUpdated(uint256 tokenId) internal {
        emit NodeUpdated(tokenId, _nodes[tokenId]);
    }

    function _page(uint256 offset, uint256 limit)
        internal
        view
        returns (NodeWithId[] memory nodes)
    {
        uint256 start = Math.min(offset, _nodeCounter);
        nodes = new NodeWithId[](Math.min(limit, _nodeCounter - start));
        for (uint256 index = 0; index < nodes.length; ++index) {
            // The cast is safe because start + index is below _nodeCounter, a uint32.
            // forge-lint: disable-next-line(unsafe-typecast)
            uint32 nodeId = _nodeIdAt(uint32(start + index));
            nodes[index] = NodeWithId(nodeId, _nodes[nodeId]);
        }
    }

    function _healthyCount() internal view returns (uint256 count) {
        for (uint32 index = 0; index < _nodeCounter; ++index) {
            if (_nodes[_nodeIdAt(index)].isHealthy) ++count;
        }
    }

    function _nodeIdAt(uint32 index) internal pure returns (uint32 nodeId) {
        return (index + 1) * NODE_INCREMENT;
    }

    function _requireHttpAddress(string calldata httpAddress) internal pure {
        if (bytes(httpAddress).length == 0) revert EmptyHttpAddress();
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

    /// @dev Coordinates of the field's prime or more would name a point a second time.
    function _isOnCurve(uint256 x, uint256 y) internal pure returns (bool) {
        uint256 cube = mulmod(mulmod(x, x, FIELD_PRIME), x, FIELD_PRIME);
        return x < FIELD_PRIME && y < FIELD_PRIME
            && mulmod(y, y, FIELD_PRIME) == addmod(cube, 7, FIELD_PRIME);
    }
}
