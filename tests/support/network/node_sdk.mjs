// Today's Node SDK, driven by a test: one JSON command a line in, one JSON answer a line out.
import { createInterface } from "node:readline";
import { Client, ConsentState, IdentifierKind } from "@xmtp/node-sdk";
import { Wallet, getBytes } from "ethers";

const identifier = (address) => ({
  identifier: address.toLowerCase(),
  identifierKind: IdentifierKind.Ethereum,
});
let client;
const streamed = [];

const conversationOf = (group) => client.conversations.getConversationById(group);

// A text as it is, a rename by the new name; nothing of other messages.
const shown = ({ content }) => {
  if (typeof content === "string") return [content];
  const changes = content?.metadataFieldChanges ?? [];
  return changes.map((change) => `${change.fieldName}: ${change.newValue}`);
};

const messagesOf = async (group) => {
  const conversation = await conversationOf(group);
  await conversation.sync();
  return conversation.messages();
};

const commands = {
  async register({ gateway, database, key, syncsDevices }) {
    const wallet = new Wallet(key);
    const signer = {
      type: "EOA",
      getIdentifier: () => identifier(wallet.address),
      signMessage: async (message) => getBytes(await wallet.signMessage(message)),
    };
    client = await Client.create(signer, {
      env: "local",
      gatewayHost: gateway,
      dbPath: database,
      disableDeviceSync: !syncsDevices,
    });
    return client.inboxId;
  },
  async installation() {
    return client.installationId;
  },
  // As the library derives them from the updates that the network has now.
  async installations() {
    const state = await client.preferences.fetchInboxState();
    return state.installations.map((each) => each.id);
  },
  async createGroup({ addresses }) {
    const group = await client.conversations.createGroupWithIdentifiers(addresses.map(identifier));
    return group.id;
  },
  async send({ group, text }) {
    const conversation = await conversationOf(group);
    await conversation.sendText(text);
    return null;
  },
  async rename({ group, name }) {
    const conversation = await conversationOf(group);
    await conversation.updateName(name);
    return null;
  },
  async name({ group }) {
    const conversation = await conversationOf(group);
    await conversation.sync();
    return conversation.name;
  },
  async join() {
    await client.conversations.sync();
    return (await client.conversations.listGroups()).map((group) => group.id);
  },
  async read({ group }) {
    const messages = await messagesOf(group);
    return messages.map((message) => message.content).filter((text) => typeof text === "string");
  },
  async list({ group }) {
    return (await messagesOf(group)).flatMap(shown);
  },
  // The SDK does not read the option that it documents for the URL.
  async requestHistory({ history }) {
    await client.sendSyncRequest(undefined, history);
    return null;
  },
  async sendArchive({ pin, history }) {
    await client.sendSyncArchive(pin, undefined, history);
    return null;
  },
  async takeArchive({ pin }) {
    await client.processSyncArchive(pin);
    return null;
  },
  async deny({ group }) {
    (await conversationOf(group)).updateConsentState(ConsentState.Denied);
    await client.preferences.sync();
    return null;
  },
  async isDenied({ group }) {
    await client.preferences.sync();
    return (await conversationOf(group)).consentState() === ConsentState.Denied;
  },
  async syncDevices() {
    await client.conversations.syncAll();
    await client.syncAllDeviceSyncGroups();
    return null;
  },
  async stream({ retrySeconds, syncs }) {
    await client.conversations.streamAllMessages({
      disableSync: !syncs,
      retryDelay: retrySeconds * 1000,
      retryAttempts: 100,
      onValue: (message) =>
        streamed.push(...shown(message).map((each) => [message.conversationId, each])),
    });
    return null;
  },
  async streamed({ group }) {
    return streamed.filter(([conversation]) => conversation === group).map(([, each]) => each);
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  try {
    console.log(JSON.stringify({ answer: await commands[command.do](command) }));
  } catch (error) {
    console.log(JSON.stringify({ error: String(error) }));
  }
}
process.exit(0);
