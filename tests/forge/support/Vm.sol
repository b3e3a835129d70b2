// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

/// @title Vm
/// @notice The cheatcodes of forge that these tests use, and no others.
// As forge names it.
// solhint-disable-next-line interface-starts-with-i
interface Vm {
    struct Wallet {
        address addr;
        uint256 publicKeyX;
        uint256 publicKeyY;
        uint256 privateKey;
    }

    struct Log {
        bytes32[] topics;
        bytes data;
        address emitter;
    }

    struct ChainInfo {
        uint256 forkId;
        uint256 chainId;
    }

    struct StorageAccess {
        address account;
        bytes32 slot;
        bool isWrite;
        bytes32 previousValue;
        bytes32 newValue;
        bool reverted;
    }

    /// @dev One call, or another touch of an account, with what it read and wrote.
    struct AccountAccess {
        ChainInfo chainInfo;
        uint8 kind;
        address account;
        address accessor;
        bool initialized;
        uint256 oldBalance;
        uint256 newBalance;
        bytes deployedCode;
        uint256 value;
        bytes data;
        bool reverted;
        StorageAccess[] storageAccesses;
        uint64 depth;
        uint64 oldNonce;
        uint64 newNonce;
    }

    /* CALLER AND STATE */

    function prank(address sender) external;
    function startPrank(address sender) external;
    function stopPrank() external;
    function label(address account, string calldata name) external;
    function store(address target, bytes32 slot, bytes32 value) external;
    function load(address target, bytes32 slot) external view returns (bytes32 value);
    function etch(address target, bytes calldata code) external;
    function chainId(uint256 chainId) external;
    function snapshotState() external returns (uint256 snapshot);
    function revertToState(uint256 snapshot) external returns (bool success);
    function startStateDiffRecording() external;
    function stopAndReturnStateDiff() external returns (AccountAccess[] memory accesses);
    function getNonce(address account) external view returns (uint64 nonce);
    function computeCreateAddress(address deployer, uint256 nonce)
        external
        pure
        returns (address created);

    /* KEYS */

    function createWallet(uint256 secret) external returns (Wallet memory wallet);

    /* EXPECTATIONS */

    function assume(bool condition) external pure;
    function expectRevert(bytes calldata revertData) external;
    function expectEmit(address emitter) external;
    function recordLogs() external;
    function getRecordedLogs() external returns (Log[] memory logs);

    /* MOCKS */

    function mockCallRevert(address callee, bytes calldata data, bytes calldata revertData) external;

    /* ASSERTIONS */

    function assertTrue(bool condition) external pure;
    function assertTrue(bool condition, string calldata message) external pure;
    function assertFalse(bool condition) external pure;
    function assertFalse(bool condition, string calldata message) external pure;
    function assertEq(bool left, bool right) external pure;
    function assertEq(bool left, bool right, string calldata message) external pure;
    function assertEq(uint256 left, uint256 right) external pure;
    function assertEq(uint256 left, uint256 right, string calldata message) external pure;
    function assertEq(address left, address right) external pure;
    function assertEq(address left, address right, string calldata message) external pure;
    function assertEq(bytes32 left, bytes32 right) external pure;
    function assertEq(bytes32 left, bytes32 right, string calldata message) external pure;
    function assertEq(bytes calldata left, bytes calldata right) external pure;
    function assertEq(bytes calldata left, bytes calldata right, string calldata message)
        external
        pure;
    function assertGt(uint256 left, uint256 right, string calldata message) external pure;
    function assertLe(uint256 left, uint256 right, string calldata message) external pure;

    /* VECTORS */

    function readFile(string calldata path) external view returns (string memory content);
    function parseJsonTypeArray(
        string calldata json,
        string calldata key,
        string calldata typeDescription
    ) external pure returns (bytes memory encoded);
    function parseJsonBytes32(string calldata json, string calldata key)
        external
        pure
        returns (bytes32 value);
    function parseJsonAddress(string calldata json, string calldata key)
        external
        pure
        returns (address value);
    function parseJsonBytes(string calldata json, string calldata key)
        external
        pure
        returns (bytes memory value);

    /* TEXT */

    function toString(uint256 value) external pure returns (string memory text);
}
