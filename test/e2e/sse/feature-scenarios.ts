import { expect } from 'vitest'
import { failureOf, PATIENT, type Scenario, withPeer } from './scenario.ts'

const WATCHED = 'test://watched-resource'

/** Everything else that a server offers. */
export const FEATURE_SCENARIOS: readonly Scenario[] = [
  withPeer('the handshake tells who the server is and what it can do', async ({ client }) => {
    expect(client.getServerVersion()).toMatchObject({ name: 'mcp-fixture', version: '1.0.0' })
    expect(client.getInstructions()).toBe('A server for tests.')
    expect(client.getServerCapabilities()).toEqual({
      tools: { listChanged: true },
      resources: { subscribe: true, listChanged: true },
      prompts: { listChanged: true },
      logging: {},
      completions: {},
    })
  }),
  withPeer('resources are listed and read: text, bytes, and an awkward URI', async ({ client }) => {
    const { resources } = await client.listResources()
    expect(resources.map(({ name }) => name)).toEqual(['static-binary', 'static-text', 'awkward', 'watched-resource'])
    const awkward = resources.find(({ name }) => name === 'awkward')
    expect(awkward?.title).toBe('Übung 大きさ')
    expect((await client.readResource({ uri: awkward?.uri ?? '' })).contents).toEqual([
      { uri: awkward?.uri, mimeType: 'text/plain', text: 'größer 大きさ 🙂' },
    ])
    expect((await client.readResource({ uri: 'test://static-binary' })).contents).toMatchObject([{ blob: expect.stringMatching(/^iVBOR/) }])
    expect(await failureOf(client.readResource({ uri: 'test://nothing' }))).toMatchObject({ code: -32002, data: { uri: 'test://nothing' } })
  }),
  withPeer('resource templates are listed and filled', async ({ client }) => {
    const { resourceTemplates } = await client.listResourceTemplates()
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual(['test://template/{id}/data'])
    expect((await client.readResource({ uri: 'test://template/17/data' })).contents).toMatchObject([
      { text: '{"id":"17","data":"Data for ID: 17"}' },
    ])
  }),
  withPeer('a change of a resource reaches its subscribers, until they unsubscribe', async (peer) => {
    const updates = () => peer.notified('notifications/resources/updated').map(({ uri }) => uri)
    await peer.text('touch_resource', { uri: WATCHED })
    expect(updates()).toEqual([])
    await peer.client.subscribeResource({ uri: WATCHED })
    await peer.text('touch_resource', { uri: 'test://static-text' })
    await peer.text('touch_resource', { uri: WATCHED })
    await expect.poll(updates, PATIENT).toEqual([WATCHED])
    await peer.client.unsubscribeResource({ uri: WATCHED })
    await peer.text('touch_resource', { uri: WATCHED })
    expect(updates()).toEqual([WATCHED])
  }),
  withPeer('prompts are listed and filled', async ({ client }) => {
    expect((await client.listPrompts()).prompts.map(({ name }) => name)).toContain('test_prompt_with_arguments')
    const filled = await client.getPrompt({ name: 'test_prompt_with_arguments', arguments: { arg1: 'grün', arg2: '"quoted"' } })
    expect(filled.messages).toEqual([
      { role: 'user', content: { type: 'text', text: "Prompt with arguments: arg1='grün', arg2='\"quoted\"'" } },
    ])
    expect(await failureOf(client.getPrompt({ name: 'no_such_prompt' }))).toMatchObject({ code: -32602 })
  }),
  withPeer('arguments are completed', async ({ client }) => {
    const ref = { type: 'ref/prompt', name: 'test_prompt_with_arguments' } as const
    const { completion } = await client.complete({ ref, argument: { name: 'arg1', value: 'par' } })
    expect(completion).toEqual({ values: ['paris', 'park', 'party'], total: 3, hasMore: false })
  }),
  withPeer('either side may ping the other', async (peer) => {
    expect(await peer.client.ping()).toEqual({})
    expect(await peer.json('ask', { kind: 'ping' })).toEqual({ answers: { answer_1: {} } })
  }),
  withPeer('a change of the lists is announced, and the new list has it', async (peer) => {
    await peer.text('set_tool', { name: 'zz_new' })
    await expect.poll(() => peer.notified('notifications/tools/list_changed').length, PATIENT).toBe(1)
    expect((await peer.client.listTools()).tools.map(({ name }) => name)).toContain('zz_new')
    expect(await peer.text('zz_new')).toBe('I am zz_new')
    await peer.text('set_tool', { name: 'zz_new', present: false })
    await expect.poll(() => peer.notified('notifications/tools/list_changed').length, PATIENT).toBe(2)
    expect(await failureOf(peer.client.callTool({ name: 'zz_new' }))).toMatchObject({ code: -32602 })
    await peer.text('test_trigger_prompt_change')
    await expect.poll(() => peer.notified('notifications/prompts/list_changed').length, PATIENT).toBe(1)
  }),
]
