import type { PodLogOptions, PodStreams } from '@thv/cluster/apiserver/kinds/pod/pod-streams'
import type { Pod } from '@thv/kube/objects/builtin-kinds'
import { deployments, pods, serviceAccounts } from '@thv/kube/objects/resource-types'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { embeddedPlace } from '../../testing/command-place.ts'
import { runThv } from '../../testing/run-thv.ts'

let place: Awaited<ReturnType<typeof embeddedPlace>>
const asked: { container: string; options: PodLogOptions }[] = []
/** Lines that a followed container prints next. */
let release: (() => void) | undefined

const RESULT = '{"result":{"content":[{"type":"text","text":"secret"}]},"jsonrpc":"2.0","id":3}'
/** Lines that containers of these names have written, with the seconds. */
const WRITTEN: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  rpc: [
    ['1.0', 'Starting'],
    ['3.0', RESULT],
  ],
  proxy: [
    ['2.0', '{"time":"2026-01-01T00:00:02Z","level":"info","msg":"listening","url":"http://127.0.0.1/mcp"}'],
    ['4.0', 'plain'],
  ],
}

const streams: PodStreams = {
  async logs({ pod, container }, options) {
    asked.push({ container, options })
    const stamped = WRITTEN[container]?.map(([time, text]) => `${options.timestamps ? `2026-01-01T00:00:0${time}00000Z ` : ''}${text}\n`)
    async function* lines(): AsyncGenerator<Uint8Array> {
      if (stamped !== undefined) {
        yield Buffer.from(stamped.join(''))
        return
      }
      yield Buffer.from(`first of ${pod}\nsecond`)
      if (options.follow) {
        await new Promise<void>((resolve) => {
          release = resolve
          options.signal.addEventListener('abort', () => resolve())
        })
      }
      yield Buffer.from(' line\n')
    }
    return lines()
  },
  attach: () => Promise.reject(new Error('not here')),
}

beforeAll(async () => {
  place = await embeddedPlace()
  place.server.servePods(streams)
  await place.client.create(serviceAccounts, { metadata: { namespace: 'default', name: 'default' } })
  await create('thing-proxy-1', ['toolhive'], { 'toolhive-name': 'thing', app: 'mcpserver' })
  await create('thing-0', ['mcp', 'helper'], { 'toolhive-name': 'thing', app: 'thing' })
  await create('talk-0', ['rpc', 'proxy'], { 'toolhive-name': 'talk' })
  await create('lonely', ['main'], { app: 'lonely' })
  const labels = { app: 'lonely' }
  const containers = [{ name: 'main', image: 'x' }]
  await place.client.create(deployments, {
    metadata: { name: 'one', namespace: 'default' },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
  })
})
afterAll(() => place.stop())

async function create(name: string, containers: string[], labels: Record<string, string>): Promise<void> {
  const spec = { containers: containers.map((each) => ({ name: each, image: 'x' })), nodeName: 'local' }
  const pod: Pod = { metadata: { name, namespace: 'default', labels }, spec }
  await place.client.create(pods, pod)
  const containerStatuses = containers.map((each) => ({
    name: each,
    ready: true,
    restartCount: 0,
    image: 'x',
    imageID: '',
    state: { running: {} },
  }))
  const status = { phase: 'Running', containerStatuses }
  await place.client.patch(pods, { namespace: 'default', name }, { kind: 'merge', body: { status } }, { subresource: 'status' })
}

describe('thv logs', () => {
  it('shows all pods of an MCP server, each line with where it comes from', async () => {
    expect(await place.thv('logs', 'thing')).toEqual({
      out: [
        '[thing-0/mcp] first of thing-0',
        '[thing-0/mcp] second line',
        '[thing-0/helper] first of thing-0',
        '[thing-0/helper] second line',
        '[thing-proxy-1/toolhive] first of thing-proxy-1',
        '[thing-proxy-1/toolhive] second line',
        '',
      ].join('\n'),
      err: '',
      error: undefined,
    })
  })

  it.each([['lonely'], ['pod/lonely'], ['deploy/one'], ['deployments.apps/one']])('%s is one pod, without a prefix', async (word) => {
    expect((await place.thv('logs', word)).out).toBe('first of lonely\nsecond line\n')
  })

  it('merges pods by time, and shows messages without their content', async () => {
    expect((await place.thv('logs', 'talk')).out.split('\n')).toEqual([
      '[talk-0/rpc] Starting',
      '[talk-0/proxy] INFO  listening url=http://127.0.0.1/mcp',
      '[talk-0/rpc] ← tools/call  ✓',
      '[talk-0/proxy] plain',
      '',
    ])
    const { out } = await place.thv('logs', 'talk', '-c', 'rpc', '--timestamps')
    expect(out).toBe('2026-01-01T00:00:01.000Z Starting\n2026-01-01T00:00:03.000Z ← tools/call  ✓\n')
  })

  it('--raw prints every line as it is, pod by pod', async () => {
    const { out } = await place.thv('logs', 'talk', '--raw')
    expect(out.split('\n').map((line) => line.replace(/^\[\S+\] /, ''))).toEqual([
      ...[...(WRITTEN['rpc'] ?? []), ...(WRITTEN['proxy'] ?? [])].map(([, text]) => text),
      '',
    ])
  })

  it('passes on what is asked for', async () => {
    asked.length = 0
    await place.thv('logs', 'pod/thing-0', '-c', 'helper', '--tail', '5', '--previous', '--timestamps')
    expect(asked).toMatchObject([{ container: 'helper', options: { tailLines: 5, previous: true, timestamps: true, follow: false } }])
  })

  it('follows until the end', async () => {
    const stop = new AbortController()
    let out = ''
    const run = runThv(['logs', 'lonely', '-f'], {
      cwd: place.folder,
      signal: stop.signal,
      out: (text) => {
        out += text
      },
    })
    await vi.waitFor(() => expect(out).toBe('[lonely/main] first of lonely\n'), { timeout: 15_000 })
    release?.()
    await vi.waitFor(() => expect(out).toContain('[lonely/main] second line\n'), { timeout: 15_000 })
    stop.abort(new Error('interrupted'))
    expect((await run).error).toBeUndefined()
  })

  it.each([
    [['missing'], /no MCP server or pod "missing" in namespace default/],
    [['pod/missing'], /pods "missing" not found/],
    [['thing', '-c', 'nothing'], /pod thing-0 has no container "nothing": it has mcp, helper/],
    [['thing', '--tail', 'some'], /--tail must be a number of lines/],
  ])('%j: %s', async (args, message) => {
    expect((await place.thv('logs', ...args)).error?.message).toMatch(message)
  })
})
