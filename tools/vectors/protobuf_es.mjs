// Prints vectors of protobuf-es: payloads as it writes them, and how it reads bytes on which
// readers differ. The package is not locked here; install it in a folder of your own:
//
//   npm install --prefix FOLDER @bufbuild/protobuf@2.17.0
//   python tools/write_descriptor_set.py FOLDER/descriptors
//   node tools/vectors/protobuf_es.mjs FOLDER > tests/vectors/protobuf_es.json
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { argv } from "node:process";
import { pathToFileURL } from "node:url";

const folder = resolve(argv[2]);
const require = createRequire(join(folder, "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { createFileRegistry, fromBinary, fromJson, toBinary, toJson } =
  await load("@bufbuild/protobuf");
const { FileDescriptorSetSchema } = await load("@bufbuild/protobuf/wkt");

const bytes = readFileSync(join(folder, "descriptors"));
const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, bytes));
const ENVELOPE = registry.getMessage("xmtp.xmtpv4.envelopes.ClientEnvelope");
const CURSOR = registry.getMessage("xmtp.xmtpv4.envelopes.Cursor");

const base64 = (value, length) => Buffer.alloc(length, value).toString("base64");
const hex = (data) => `0x${Buffer.from(data).toString("hex")}`;
const aad = (kind, cursor) => ({
  target_topic: base64(kind, 1 + 32),
  last_seen: { node_id_to_sequence_id: cursor },
});

const WRITTEN = {
  "group message": {
    aad: aad(0, { 0: "7", 100: "18446744073709551615", 200: "0" }),
    group_message: { v1: { data: base64(1, 300), sender_hmac: base64(2, 32), should_push: true } },
  },
  welcome: {
    aad: aad(1, {}),
    welcome_message: { v1: { installation_key: base64(1, 32), data: base64(3, 40), wrapper_algorithm: 1 } },
  },
  "key package": { aad: aad(3, {}), upload_key_package: { key_package: { key_package_tls_serialized: base64(1, 9) } } },
  "identity update": {
    aad: aad(2, { 0: "3" }),
    identity_update: {
      inbox_id: "é".repeat(32),
      client_timestamp_ns: "1",
      actions: [
        { create_inbox: { initial_identifier: "0x", nonce: "0", relying_party: "" } },
        { add: { new_member_identifier: { ethereum_address: "" } } },
      ],
    },
  },
};

// Cursors by hand, each with what is odd about it.
const CURSORS = {
  "zero value left out": "0a020805",
  "both zeros left out": "0a00",
  "unknown field in an entry": "0a0608051007187b",
  "another wire type": "0800",
  "tag of five bytes": "8a808080000408051007",
  "tag of six bytes": "8a80808080000408051007",
  "length of five bytes": "0a848080800008051007",
  "length of six bytes": "0a84808080800008051007",
  "integer of ten bytes": "0a0d080510ffffffffffffffffff01",
  "integer beyond 64 bits": "0a0d080510ffffffffffffffffff7f",
  "field 0": "020100",
  "integer behind its entry": "0a02108001",
};

function read(data) {
  try {
    return toJson(CURSOR, fromBinary(CURSOR, data), { useProtoFieldName: true }).node_id_to_sequence_id ?? {};
  } catch {
    return null;
  }
}

const written = Object.entries(WRITTEN).map(([name, value]) => ({
  name,
  payload: hex(toBinary(ENVELOPE, fromJson(ENVELOPE, value))),
}));
const cursors = Object.entries(CURSORS).map(([name, data]) => ({
  name,
  data: `0x${data}`,
  read: read(Buffer.from(data, "hex")),
}));
const { version } = JSON.parse(
  readFileSync(join(folder, "node_modules/@bufbuild/protobuf/package.json"), "utf8"),
);
const source = `@bufbuild/protobuf ${version}, by tools/vectors/protobuf_es.mjs`;
console.log(JSON.stringify({ source, written, cursors }, null, 2));
