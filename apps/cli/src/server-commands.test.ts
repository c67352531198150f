import { type Fixture, startFixture } from '@thv/testkit/mcp/fixture'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { runThv } from './testing/run-thv.ts'

const FORMS = [
  ['both eras', {}, '2026-07-28 over streamable-http'],
  ['legacy', { era: 'legacy' }, '2025-11-25 over streamable-http'],
  ['modern', { era: 'modern' }, '2026-07-28 over streamable-http'],
  ['HTTP+SSE', { transport: 'sse' }, '2025-11-25 over sse'],
] as const

describe.each(FORMS)('with a server of %s', (_title, options, wire) => {
  let fixture: Fixture
  beforeAll(async () => {
    fixture = await startFixture({ ...options, pageSize: 20 })
  })
  afterAll(() => fixture.stop())

  it('thv tools lists them', async () => {
    const { out, err, error } = await runThv(['tools', fixture.url])
    expect(error).toBeUndefined()
    const lines = out.trimEnd().split('\n')
    expect(lines[0]).toMatch(/^NAME +DESCRIPTION +ARGUMENTS$/)
    expect(lines).toContainEqual(
      expect.stringMatching(/^add_numbers +Add two numbers: Adds two numbers; a missing one is 0 +\[a=number\] \[b=number\]$/),
    )
    expect(err).toBe(`${lines.length - 1} tools of mcp-fixture 1.0.0 (${wire})\n`)
  })

  it('thv tools -o json gives them as they are', async () => {
    const { out, err } = await runThv(['tools', fixture.url, '-o', 'json'])
    expect(JSON.parse(out)).toContainEqual(
      expect.objectContaining({ name: 'add_numbers', title: 'Add two numbers', annotations: { readOnlyHint: true } }),
    )
    expect(err).toBe('')
  })

  it('thv call calls one, in the types that it wants', async () => {
    expect(await runThv(['call', fixture.url, 'add_numbers', 'a=2', 'b=40'])).toEqual({ out: '42\n', err: '', error: undefined })
    expect((await runThv(['call', fixture.url, 'echo', 'text=5', 'more:=[1]'])).out).toBe(
      '{"text":"5","more":[1]}\n{\n  "arguments": {\n    "text": "5",\n    "more": [\n      1\n    ]\n  }\n}\n',
    )
    expect((await runThv(['call', fixture.url, 'structured_point', 'x=7'])).out).toBe('{\n  "x": 7,\n  "y": 2\n}\n')
    expect((await runThv(['call', fixture.url, 'test_multiple_content_types'])).out).toMatch(
      /^Multiple content types test:\n\[image image\/png \d+ B\]\n\[resource test:\/\/mixed-content-resource text\/plain 15 B\]\n$/,
    )
  })

  it('thv call -o json gives the raw result', async () => {
    const { out } = await runThv(['call', fixture.url, 'greet', 'name=Bob', '-o', 'json'])
    expect(JSON.parse(out)).toMatchObject({ content: [{ type: 'text', text: 'Hello, Bob!' }] })
  })

  it('a tool that fails says so on standard error', async () => {
    const { out, err, error } = await runThv(['call', fixture.url, 'test_error_handling'])
    expect({ out, err }).toEqual({ out: '', err: 'This tool intentionally returns an error for testing\n' })
    expect(error).toMatchObject({ code: 'tool_failed', message: 'tool "test_error_handling" failed' })
    const json = await runThv(['call', fixture.url, 'test_error_handling', '-o', 'json'])
    expect(JSON.parse(json.out)).toMatchObject({ isError: true })
    expect(json.error?.code).toBe('tool_failed')
    expect((await runThv(['call', fixture.url, 'rpc_error', 'message=no'])).error).toMatchObject({
      code: 'mcp_error_response',
      message: 'no',
    })
  })

  it('wrong names are corrected', async () => {
    const { error } = await runThv(['call', fixture.url, 'add_number', 'a=1'])
    expect(error).toMatchObject({
      code: 'usage',
      message: expect.stringMatching(/no tool "add_number"\. Did you mean "add_numbers".*lists all \d+/),
    })
    const second = await runThv(['call', fixture.url, 'add_numbers', 'c=1'])
    expect(second.error).toMatchObject({ code: 'usage', message: expect.stringMatching(/no argument "c": it takes a, b/) })
  })

  it('declines questions of the server without a terminal', async () => {
    const { out, err } = await runThv(['call', fixture.url, 'test_elicitation', 'message=Who?'])
    expect(out).toBe('User response: action=decline, content={}\n')
    expect(err).toBe('The server asks: Who? Declined, as there is no terminal to ask on.\n')
  })

  it('asks the questions of the server on a terminal', async () => {
    const ask = asking('', 'Ada', 'ada@example.com')
    const { out } = await runThv(['call', fixture.url, 'test_elicitation', 'message=Who?'], { ask })
    expect(out).toBe('User response: action=accept, content={"username":"Ada","email":"ada@example.com"}\n')
    expect(ask.mock.calls.map(([question]) => question)).toEqual([
      'The server asks: Who?\nAnswer it? [Y/n] ',
      expect.stringContaining('username (Your name), string'),
      expect.stringContaining('email (Your e-mail address), string'),
    ])
    const defaults = await runThv(['call', fixture.url, 'test_elicitation_sep1034_defaults'], {
      ask: asking('y', '', 'old', '31', '', 'gone', 'active', 'false'),
    })
    expect(defaults.out).toBe(
      'User response: action=accept, content={"name":"John Doe","age":31,"score":95.5,"status":"active","verified":false}\n',
    )
    expect(defaults.err).toBe('  It must be an integer.\n  It must be one of "active", "inactive", "pending".\n')
    expect((await runThv(['call', fixture.url, 'test_elicitation'], { ask: asking('n') })).out).toContain('action=decline')
    expect((await runThv(['call', fixture.url, 'test_elicitation'], { ask: asking('y', undefined) })).out).toContain('action=cancel')
  })

  it('a tool that needs a language model says that there is none', async () => {
    const { err, error } = await runThv(['call', fixture.url, 'test_sampling', 'prompt=Hi'])
    expect(`${err}${error?.message}`).toMatch(/sampling/)
  })

  it('progress is shown on a terminal only', async () => {
    const terminal = await runThv(['call', fixture.url, 'test_tool_with_progress'], { isTerminal: true })
    expect(terminal).toMatchObject({ out: 'Done\n', err: '\r\x1b[K0 %\r\x1b[K50 %\r\x1b[K100 %\r\x1b[K' })
    expect((await runThv(['call', fixture.url, 'test_tool_with_progress'])).err).toBe('')
  })

  it('leaves no session behind', async () => {
    await runThv(['tools', fixture.url])
    await vi.waitFor(() => expect(fixture.stats.sessions).toBe(0), 10_000)
  })
})

describe('options', () => {
  it('--header goes to the server, and never into a message', async () => {
    await using fixture = await startFixture()
    const { out } = await runThv(['call', fixture.url, 'report_request', '--header', 'X-One=1=2', '--header', 'X-Two: b'])
    expect(JSON.parse(out)).toMatchObject({ headers: { 'x-one': '1=2', 'x-two': 'b' }, clientInfo: { name: 'thv' } })
    const { error } = await runThv(['tools', fixture.url, '--header', 'nonsense\nsecret'])
    expect(error).toMatchObject({ code: 'usage', message: '--header must be Name=value' })
  })

  it('--timeout ends a call', async () => {
    await using fixture = await startFixture()
    const { error } = await runThv(['call', fixture.url, 'hang', '--timeout', '100ms'])
    expect(error).toMatchObject({ code: 'timeout', message: expect.stringContaining('give it more time with --timeout') })
    expect((await runThv(['tools', fixture.url, '--timeout', 'soon'])).error).toMatchObject({ code: 'usage' })
  })

  it('Ctrl-C ends a call, and the server hears of it', async () => {
    await using fixture = await startFixture({ era: 'legacy' })
    const controller = new AbortController()
    const run = runThv(['call', fixture.url, 'hang'], { signal: controller.signal })
    await vi.waitFor(() => expect(fixture.stats.count('tools/call')).toBe(1), 10_000)
    controller.abort(new Error('interrupted'))
    expect((await run).error).toMatchObject({ code: 'aborted' })
    expect(fixture.stats.sessions).toBe(0)
  })

  it('--verbose tells what else the server says', async () => {
    await using fixture = await startFixture({ oddTools: true })
    const { err } = await runThv(['call', fixture.url, 'test_tool_with_logging', '--verbose'])
    expect(err).toMatch(/warning: tool "zz_invalid_header" is left out/)
    expect(err).toMatch(/notifications\/message .*Tool execution started/)
  })
})

describe('a server in trouble', () => {
  it.each([
    [401, 'mcp_auth_required', /--header "Authorization=Bearer/],
    [503, 'mcp_http_status', /HTTP 503: try again in 4 s/],
    [429, 'mcp_http_status', /HTTP 429/],
  ])('HTTP %i', async (status, code, message) => {
    await using fixture = await startFixture()
    fixture.admin.fail({ status, times: 1, headers: { 'retry-after': '4' } })
    expect((await runThv(['tools', fixture.url])).error).toMatchObject({ code, message: expect.stringMatching(message) })
  })

  it('reports an unreachable server', async () => {
    const { error } = await runThv(['tools', 'http://127.0.0.1:1/mcp'])
    expect(error).toMatchObject({ code: 'backend_refused', message: expect.stringContaining('is the server running?') })
  })

  it('an answer that breaks off', async () => {
    await using fixture = await startFixture({ era: 'modern' })
    const { error } = await runThv(['call', fixture.url, 'close_mid_stream'])
    expect(error).toMatchObject({ code: 'mcp_stream_broken' })
  })

  it('a page that is no MCP server', async () => {
    await using fixture = await startFixture()
    const { error } = await runThv(['tools', fixture.url.replace('/mcp', '/index.html')])
    expect(error).toMatchObject({ code: 'mcp_http_status', message: expect.stringContaining('is this the URL of its MCP endpoint?') })
  })
})

function asking(...answers: (string | undefined)[]) {
  const left = [...answers]
  return vi.fn(async (_question: string, _signal: AbortSignal) => left.shift())
}
