import type { PodLogOptions, PodStreams } from '@thv/cluster/apiserver/kinds/pod/pod-streams'
import type { Pod } from '@thv/kube/objects/builtin-kinds'
import { deployments, pods, serviceAccounts } from '@thv/kube/objects/resource-types'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { embeddedPlace } from '../testing/command-place.ts'
import { runThv } from '../testing/run-thv.ts'

let place: Awaited<ReturnType<typeof embeddedPlace>>
const asked: { container: string; options: PodLogOptions }[] = []
/** What a followed container prints next. */
let release: (() => void) | undefined

const streams: PodStreams = {
  async logs({ pod, container }, options) {
    asked.push({ container, options })
    async function* lines() {
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
    [['nobody'], /neither a pod nobody nor pods of a server nobody in namespace default/],
    [['pod/nobody'], /pods "nobody" not found/],
    [['thing', '-c', 'nothing'], /pod thing-0 has no container "nothing": it has mcp, helper/],
    [['thing', '--tail', 'some'], /--tail must be a number of lines/],
  ])('%j: %s', async (args, message) => {
    expect((await place.thv('logs', ...args)).error?.message).toMatch(message)
  })
})
