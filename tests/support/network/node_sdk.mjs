// Today's Node SDK, driven by a test: one JSON command a line in, one JSON answer a line out.
import { createInterface } from "node:readline";
import { Client, IdentifierKind } from "@xmtp/node-sdk";
import { Wallet, getBytes } from "ethers";

const identifier = (address) => ({
  identifier: address.toLowerCase(),
  identifierKind: IdentifierKind.Ethereum,
});
let client;
const streamed = [];

const commands = {
  async register({ gateway, database, key }) {
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
      disableDeviceSync: true,
    });
    return client.inboxId;
  },
  async createGroup({ addresses }) {
    const group = await client.conversations.createGroupWithIdentifiers(addresses.map(identifier));
    return group.id;
  },
  async send({ group, text }) {
    const conversation = await client.conversations.getConversationById(group);
    await conversation.sendText(text);
    return null;
  },
  async join() {
    await client.conversations.sync();
    return (await client.conversations.listGroups()).map((group) => group.id);
  },
  async read({ group }) {
    const conversation = await client.conversations.getConversationById(group);
    await conversation.sync();
    const messages = await conversation.messages();
    return messages.map((message) => message.content).filter((text) => typeof text === "string");
  },
  async stream() {
    await client.conversations.streamAllMessages({
      onValue: ({ conversationId, content }) => streamed.push([conversationId, content]),
    });
    return null;
  },
  async streamed({ group }) {
    return streamed
      .filter(([id, content]) => id === group && typeof content === "string")
      .map(([, text]) => text);
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
