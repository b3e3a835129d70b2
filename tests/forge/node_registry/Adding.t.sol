// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {IERC721} from "@openzeppelin/contracts/token/ERC721/IERC721.sol";
import {IERC721Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";
import {INodeRegistry} from "../../../contracts/interfaces/INodeRegistry.sol";
import {NodeRegistrySuite} from "../support/NodeRegistrySuite.sol";

contract NodeRegistryAddingTest is NodeRegistrySuite {
    uint256 internal constant MAX_FUZZED_KEY_LENGTH = 200;
    uint256 internal constant MAX_FUZZED_NODES = 12;
    uint256 internal constant KEY_LENGTH = 65;

    /* ADDED */

    /// conforms: 2.2.1-1, 2.2.1-3, 2.2.1-12, 3.1.1-10
    function test_addNode__firstNode__hasId100AndEmitsWhoAndWhat() public {
        bytes memory key = _keyOf(1);
        vm.expectEmit(address(registry));
        emit IERC721.Transfer(address(0), operator, 100);
        vm.expectEmit(address(registry));
        emit INodeRegistry.NodeAdded(owner, 100, operator);
        vm.expectEmit(address(registry));
        emit INodeRegistry.NodeUpdated(100, INodeRegistry.Node(key, HTTP_ADDRESS, true));
        vm.assertEq(_addWithKey(operator, key), 100);
        vm.assertEq(registry.ownerOf(100), operator);
        vm.assertEq(abi.encode(registry.getNode(100)), abi.encode(_node(1, true)));
    }

    function testFuzz_addNode__keyOfAnySecret__isTakenAndFound(uint256 secret) public {
        secret = _bound(secret, 1, GROUP_ORDER - 1);
        uint32 nodeId = _add(operator, secret);
        INodeRegistry.NodeWithId memory expected =
            INodeRegistry.NodeWithId(nodeId, _node(secret, true));
        bytes memory byKey = abi.encode(registry.nodeBySigningKey(_keyOf(secret)));
        bytes memory byAddress = abi.encode(registry.nodeByKeyAddress(_keyAddressOf(secret)));
        vm.assertEq(byKey, abi.encode(expected));
        vm.assertEq(byAddress, abi.encode(expected));
    }

    /// conforms: 2.2.1-1, 3.1.1-2
    function testFuzz_addNode__anyNumberOfNodes__idsCountUpByOneHundred(uint256 nodes) public {
        nodes = _bound(nodes, 1, MAX_FUZZED_NODES);
        for (uint256 number = 1; number <= nodes; ++number) {
            vm.assertEq(_add(operator, number), number * NODE_INCREMENT);
            vm.assertEq(registry.nodeCount(), number);
        }
    }

    function testFuzz_addNode__httpAddressWithinBounds__isKept(uint256 seed, uint256 length)
        public
    {
        length = _bound(length, 1, MAX_HTTP_ADDRESS_LENGTH);
        string memory httpAddress = string(_payload(seed, length));
        bytes memory key = _keyOf(1);
        vm.prank(owner);
        registry.addNode(operator, key, httpAddress);
        vm.assertEq(bytes(registry.getNode(100).httpAddress), bytes(httpAddress));
    }

    /* HTTP ADDRESS REFUSED */

    function test_addNode__emptyHttpAddress__reverts() public {
        _assertRefused(
            _keyOf(1), "", abi.encodeWithSelector(INodeRegistry.EmptyHttpAddress.selector)
        );
    }

    function testFuzz_addNode__httpAddressTooLong__revertsWithLengthAndBound(uint256 length)
        public
    {
        length = _bound(length, MAX_HTTP_ADDRESS_LENGTH + 1, 2 * MAX_HTTP_ADDRESS_LENGTH);
        _assertRefused(_keyOf(1), string(new bytes(length)), _tooLong(length));
    }

    function test_addNode__httpAddressOneByteTooLong__reverts() public {
        vm.assertEq(registry.maxHttpAddressLength(), MAX_HTTP_ADDRESS_LENGTH);
        uint256 length = MAX_HTTP_ADDRESS_LENGTH + 1;
        _assertRefused(_keyOf(1), string(new bytes(length)), _tooLong(length));
    }

    /* KEY REFUSED */

    /// conforms: 3.1.1-3
    function testFuzz_addNode__keyOfAnyOtherLength__reverts(uint256 secret, uint256 length) public {
        length = _bound(length, 0, MAX_FUZZED_KEY_LENGTH);
        vm.assume(length != KEY_LENGTH);
        bytes memory key = _resized(_keyOf(_bound(secret, 1, GROUP_ORDER - 1)), length);
        _assertKeyRefused(
            key, abi.encodeWithSelector(INodeRegistry.InvalidSigningKeyLength.selector, length)
        );
    }

    /// conforms: 3.1.1-4
    function testFuzz_addNode__anyOtherPrefix__reverts(uint256 secret, bytes1 prefix) public {
        vm.assume(prefix != UNCOMPRESSED_POINT_PREFIX);
        bytes memory key = _keyOf(_bound(secret, 1, GROUP_ORDER - 1));
        key[0] = prefix;
        _assertKeyRefused(
            key, abi.encodeWithSelector(INodeRegistry.InvalidSigningKeyPrefix.selector, prefix)
        );
    }

    /// @dev That two random words are a point has a chance of about 1 in 2²⁵⁶.
    /// conforms: 3.1.1-5
    function testFuzz_addNode__randomPoint__reverts(uint256 x, uint256 y) public {
        _assertKeyRefused(_uncompressed(x, y), _notOnCurve(x, y));
    }

    function testFuzz_addNode__oneBitChanged__reverts(uint256 secret, uint256 bit) public {
        (uint256 x, uint256 y) = _pointOf(_bound(secret, 1, GROUP_ORDER - 1));
        bit = _bound(bit, 0, 511);
        if (bit < 256) x ^= 2 ** bit;
        else y ^= 2 ** (bit - 256);
        _assertKeyRefused(_uncompressed(x, y), _notOnCurve(x, y));
    }

    /// conforms: 3.1.1-6
    function testFuzz_addNode__keyUsedBefore__revertsAlsoAfterTheNodeWasDisabled(
        uint256 secret,
        bool disabled
    ) public {
        secret = _bound(secret, 1, GROUP_ORDER - 1);
        _add(operator, secret);
        vm.prank(owner);
        registry.updateHealth(100, !disabled);
        bytes memory key = _keyOf(secret);
        vm.expectRevert(abi.encodeWithSelector(INodeRegistry.SigningKeyAlreadyUsed.selector, 100));
        _addWithKey(secondOperator, key);
        vm.assertEq(registry.nodeCount(), 1);
    }

    /* CALLER AND HOLDER REFUSED */

    /// conforms: 2.2.1-2, 3.1.1-11
    function testFuzz_addNode__anyOther__reverts(address account) public {
        vm.assume(account != owner);
        bytes memory key = _keyOf(1);
        vm.prank(account);
        _expectNotOwner(account);
        registry.addNode(account, key, HTTP_ADDRESS);
        vm.assertEq(registry.nodeCount(), 0);
    }

    function test_addNode__zeroHolder__revertsAndTheKeyStaysFree() public {
        bytes memory key = _keyOf(1);
        vm.expectRevert(
            abi.encodeWithSelector(IERC721Errors.ERC721InvalidReceiver.selector, address(0))
        );
        _addWithKey(address(0), key);
        vm.assertEq(_addWithKey(operator, key), 100);
    }

    function test_addNode__refused__takesNoId() public {
        _assertKeyRefused(
            "", abi.encodeWithSelector(INodeRegistry.InvalidSigningKeyLength.selector, 0)
        );
        vm.assertEq(_add(operator, 1), 100);
    }

    /* INTERNALS */

    function _assertKeyRefused(bytes memory key, bytes memory refusal) private {
        _assertRefused(key, HTTP_ADDRESS, refusal);
        vm.expectRevert(refusal);
        registry.nodeBySigningKey(key);
    }

    function _assertRefused(bytes memory key, string memory httpAddress, bytes memory refusal)
        private
    {
        vm.prank(owner);
        vm.expectRevert(refusal);
        registry.addNode(operator, key, httpAddress);
        vm.assertEq(registry.nodeCount(), 0);
    }

    function _tooLong(uint256 length) private pure returns (bytes memory refusal) {
        return abi.encodeWithSelector(
            INodeRegistry.HttpAddressTooLong.selector, length, MAX_HTTP_ADDRESS_LENGTH
        );
    }

    function _notOnCurve(uint256 x, uint256 y) private pure returns (bytes memory refusal) {
        return abi.encodeWithSelector(INodeRegistry.SigningKeyNotOnCurve.selector, x, y);
    }

    function _resized(bytes memory data, uint256 length)
        private
        pure
        returns (bytes memory resized)
    {
        resized = new bytes(length);
        for (uint256 index = 0; index < length && index < data.length; ++index) {
            resized[index] = data[index];
        }
    }
}
