// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

/// @title HostileWallet
/// @notice Answers every call in a way that no wallet should, so that tests can show that it keeps
/// nobody from an answer. Only tests deploy it.
contract HostileWallet {
    /* WAYS */

    /// @notice What it does when it is called.
    enum Way {
        Loop,
        Revert,
        RevertWithMegabyte,
        InvalidInstruction,
        ReturnMegabyte,
        ReturnMagicThenMegabyte,
        ReturnNothing,
        ReturnShortMagic,
        ReturnDirtyMagic,
        ReturnInput,
        SelfDestruct,
        Write
    }

    /* STORAGE */

    Way private immutable _way;
    uint256 private _written;

    /* CONSTRUCTOR */

    /// @notice Chooses what it does.
    /// @param way For ever.
    constructor(Way way) {
        _way = way;
    }

    /* ANSWERING */

    // solhint-disable no-complex-fallback, no-inline-assembly, use-natspec

    fallback() external {
        Way way = _way;
        bytes32 magic = bytes32(bytes4(0x1626ba7e));
        if (way == Way.SelfDestruct) selfdestruct(payable(msg.sender));
        if (way == Way.Write) _written = gasleft();
        assembly {
            // The order of the cases is that of the ways.
            switch way
            case 0 { for {} 1 {} { mstore(0, keccak256(0, 4096)) } }
            case 1 { revert(0, 0) }
            case 2 { revert(0, 1048576) }
            case 3 { invalid() }
            case 4 { return(0, 1048576) }
            case 5 {
                mstore(0, magic)
                return(0, 1048576)
            }
            case 6 { return(0, 0) }
            case 7 {
                mstore(0, magic)
                return(0, 31)
            }
            case 8 {
                mstore(0, or(magic, 1))
                return(0, 32)
            }
            case 9 {
                calldatacopy(0, 0, calldatasize())
                return(0, calldatasize())
            }
            mstore(0, magic)
            return(0, 32)
        }
    }
}
