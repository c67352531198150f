import { expect } from 'vitest'
import { arrived, failureOf, OWN_PROCESS, PATIENT, type Scenario, withPeer } from './scenario.ts'

const ANYTHING = { parse: (value: unknown) => value, safeParse: (data: unknown) => ({ success: true, data }) } as never

/** Tools, and what comes while they work. */
export const TOOL_SCENARIOS: readonly Scenario[] = [
  withPeer('tools are listed with their schemas', async ({ client }) => {
    const { tools } = await client.listTools()
    expect(tools.find(({ name }) => name === 'structured_point')).toMatchObject({
      inputSchema: { properties: { x: { type: 'integer' }, y: { type: 'integer' } } },
      outputSchema: { required: ['x', 'y'] },
    })
    expect(tools.find(({ name }) => name === 'add_numbers')).toMatchObject({
      title: 'Add two numbers',
      annotations: { readOnlyHint: true },
    })
  }),
  withPeer('a call answers with text', async ({ client }) => {
    expect(await client.callTool({ name: 'add_numbers', arguments: { a: 19, b: 23 } })).toEqual({ content: [{ type: 'text', text: '42' }] })
  }),
  withPeer('a call answers with structured content', async ({ client }) => {
    await client.listTools() // so that the client checks the answer against the schema
    expect(await client.callTool({ name: 'structured_point', arguments: { x: 3, y: 4 } })).toMatchObject({
      structuredContent: { x: 3, y: 4 },
    })
  }),
  withPeer('a tool that fails answers with a result', async ({ client }) => {
    const { isError, content } = await client.callTool({ name: 'test_error_handling' })
    expect({ isError, content }).toEqual({
      isError: true,
      content: [{ type: 'text', text: 'This tool intentionally returns an error for testing' }],
    })
  }),
  withPeer('a call that is refused answers with the error of the server, its data too', async ({ client }) => {
    const refused = client.callTool({ name: 'rpc_error', arguments: { code: -32042, message: 'größer' } })
    expect(await failureOf(refused)).toMatchObject({ code: -32042, message: expect.stringContaining('größer'), data: { demanded: true } })
  }),
  withPeer('an unknown tool and an unknown method are errors of their own', async ({ client }) => {
    expect(await failureOf(client.callTool({ name: 'no_such_tool' }))).toMatchObject({ code: -32602 })
    expect(await failureOf(client.request({ method: 'no/such' as 'ping' }, ANYTHING))).toMatchObject({ code: -32601 })
  }),
  withPeer('pictures, sound, links and embedded resources come whole', async ({ client }) => {
    expect(await client.callTool({ name: 'test_image_content' })).toMatchObject({
      content: [{ type: 'image', mimeType: 'image/png', data: expect.stringMatching(/^iVBORw0KGgo.*==$/) }],
    })
    expect(await client.callTool({ name: 'test_audio_content' })).toMatchObject({ content: [{ type: 'audio', mimeType: 'audio/wav' }] })
    expect(await client.callTool({ name: 'test_resource_link' })).toMatchObject({
      content: [{ type: 'resource_link', uri: 'test://static-text' }],
    })
    expect(await client.callTool({ name: 'test_multiple_content_types' })).toMatchObject({
      content: [{ type: 'text' }, { type: 'image' }, { type: 'resource', resource: { text: '{"test":"data"}' } }],
    })
  }),
  withPeer('progress comes before the answer and in order', async (peer) => {
    await peer.client.callTool({ name: 'test_tool_with_progress' }, undefined, { onprogress: () => undefined })
    // Not what the SDK tells: it says nothing of progress that came in one piece with the answer.
    expect(peer.notified('notifications/progress').map(({ progress, total }) => [progress, total])).toEqual([
      [0, 100],
      [50, 100],
      [100, 100],
    ])
  }),
  withPeer('log messages come as the level allows', async (peer) => {
    await peer.client.setLoggingLevel('error')
    await peer.text('test_tool_with_logging')
    expect(peer.notified('notifications/message')).toEqual([])
    await peer.client.setLoggingLevel('info')
    await peer.text('test_tool_with_logging')
    expect(peer.notified('notifications/message').map(({ data }) => data)).toEqual([
      'Tool execution started',
      'Tool processing data',
      'Tool execution completed',
    ])
  }),
  withPeer(
    'a cancelled call stops at the server, and later ones work',
    async (peer) => {
      const giveUp = new AbortController()
      const hung = await arrived(peer, () => failureOf(peer.client.callTool({ name: 'hang' }, undefined, { signal: giveUp.signal })))
      giveUp.abort('enough')
      expect(await hung.answer).toMatchObject({ message: expect.stringContaining('enough') })
      const byNotification = expect.objectContaining({ name: 'hang', by: 'notification' })
      await expect.poll(async () => (await peer.json('fixture_stats'))['cancelled'], PATIENT).toContainEqual(byNotification)
      expect(await peer.text('greet', { name: 'Ada' })).toBe('Hello, Ada!')
    },
    // In a shared process it is unclear for a minute whose logs come: the cancelled call may still be running.
    OWN_PROCESS,
  ),
  withPeer('text of every kind comes back as it was', async (peer) => {
    const texts = [
      'grüße 大きさ 👩‍👩‍👧',
      'a\u2028b\u2029c\u0085d',
      'line\nline\r\nline\rdata: x\n\nevent: y',
      '\u0000\u001f\u007f\ufeff',
      '\ud800 alone',
    ]
    for (const text of texts) expect(await peer.json('echo', { text, [text]: 1 })).toEqual({ text, [text]: 1 })
  }),
  withPeer('a megabyte comes and goes', async (peer) => {
    const size = 1_048_576
    expect((await peer.text('big_result', { bytes: size })).length).toBe(size)
    const text = 'ü'.repeat(size / 2)
    expect((await peer.json('echo', { text }))['text'] === text).toBe(true)
  }),
  withPeer(
    'a thousand log messages come in order, before the answer',
    async (peer) => {
      await peer.text('flood', { count: 1_000 })
      const numbers = peer.notified('notifications/message').map(({ data }) => Number(data))
      expect(numbers).toEqual(Array.from({ length: 1_000 }, (_, at) => at + 1))
    },
    // In a process that others use, a client that is slow to take its logs does not get all of them.
    OWN_PROCESS,
  ),
  withPeer('calls at the same time are answered as they are ready', async (peer) => {
    const order: string[] = []
    const call = async (tool: string, args: Record<string, unknown>) => order.push(`${tool} ${await peer.text(tool, args)}`)
    await Promise.all([call('slow', { ms: 3_000 }), call('greet', { name: 'Ada' })])
    expect(order).toEqual(['greet Hello, Ada!', 'slow slept'])
  }),
  withPeer('what is no message does no harm', async (peer) => {
    expect(await peer.text('garbage')).toBe('after garbage')
    expect(await peer.text('greet')).toBe('Hello, World!')
  }),
]
