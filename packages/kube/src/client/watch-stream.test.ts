import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { TestClock } from '@thv/kernel/clock'
import { isThvError } from '@thv/kernel/errors'
import { describe, expect, it } from 'vitest'
import { configMaps } from '../objects/resource-types.ts'
import { eventually, type Handler, startLoopback } from '../testing/loopback-server.ts'
import { createKubeClient, type KubeClient, type KubeClientOptions, type WatchOptions } from './client.ts'
import { KubeApiError } from './kube-api-error.ts'

const tick = () => new Promise((resolve) => setTimeout(resolve, 10))
const event = (type: string, name: string, more: object = {}) =>
  `${JSON.stringify({ type, object: { metadata: { name, resourceVersion: '7', ...more } } })}\n`

async function withServer(handler: Handler, use: (client: KubeClient) => Promise<void>, options: KubeClientOptions = {}) {
  await using server = await startLoopback(handler)
  const client = createKubeClient(server.connection(), { retry: { baseMs: 1, maxMs: 1, maxAttempts: 2 }, ...options })
  try {
    await use(client)
  } finally {
    await client.close()
  }
}

/** Events of a watch, and how it ends. */
async function drain(client: KubeClient, opts: Partial<WatchOptions> = {}) {
  const seen: string[] = []
  try {
    for await (const { type, object } of client.watch(configMaps, { resourceVersion: '5', ...opts }))
      seen.push(`${type} ${object.metadata.name}`)
    return { seen, error: undefined }
  } catch (error) {
    return { seen, error }
  }
}

async function streamOf(write: (response: ServerResponse) => void | Promise<void>, options?: KubeClientOptions) {
  let result: Awaited<ReturnType<typeof drain>> = { seen: [], error: new Error('did not run') }
  await withServer(
    async (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.flushHeaders()
      await write(response)
    },
    async (client) => {
      result = await drain(client)
    },
    options,
  )
  return result
}

describe('watch', () => {
  it('asks for bookmarks and a server-side timeout', async () => {
    await using server = await startLoopback((_request, response) => void response.end())
    const client = createKubeClient(server.connection())
    expect(await drain(client, { namespace: 'team', labelSelector: 'a=b' })).toEqual({ seen: [], error: undefined })
    await drain(client, { allowBookmarks: false, timeoutSeconds: 3 })
    expect(server.requests.map((request) => request.url)).toEqual([
      '/api/v1/namespaces/team/configmaps?labelSelector=a%3Db&resourceVersion=5&watch=true&allowWatchBookmarks=true&timeoutSeconds=290',
      '/api/v1/configmaps?resourceVersion=5&watch=true&allowWatchBookmarks=false&timeoutSeconds=3',
    ])
    await client.close()
  })

  it('yields events and bookmarks in order and ends with the stream', async () => {
    const result = await streamOf((response) => {
      response.write(event('ADDED', 'a') + event('MODIFIED', 'a'))
      response.write(`\n${event('DELETED', 'a').trimEnd()}\r\n`)
      response.end(event('BOOKMARK', ''))
    })
    expect(result).toEqual({ seen: ['ADDED a', 'MODIFIED a', 'DELETED a', 'BOOKMARK '], error: undefined })
  })

  it('keeps characters whole that span chunks', async () => {
    const bytes = Buffer.from(event('ADDED', 'zwölf-𝄞-é'))
    const result = await streamOf(async (response) => {
      for (const byte of bytes) {
        response.write(Buffer.from([byte]))
        if (byte >= 0x80) await tick()
      }
      response.end()
    })
    expect(result).toEqual({ seen: ['ADDED zwölf-𝄞-é'], error: undefined })
  })

  it('takes a line of several megabytes', async () => {
    const big = 'x'.repeat(5 << 20)
    const result = await streamOf((response) => void response.end(event('ADDED', 'big', { annotations: { big } }) + event('ADDED', 'next')))
    expect(result.seen).toEqual(['ADDED big', 'ADDED next'])
  })

  it.each([
    ['garbage', '<html>\n'],
    ['half JSON with a newline', '{"type":"ADDED"\n'],
    ['a JSON array', '[]\n'],
    ['an unknown type', '{"type":"RENAMED","object":{"metadata":{}}}\n'],
    ['no object', '{"type":"ADDED"}\n'],
    ['no metadata', '{"type":"ADDED","object":{}}\n'],
    ['an ERROR that is no Status', '{"type":"ERROR","object":{"kind":"Pod"}}\n'],
  ])('%s after an event is kube_response_malformed, without quoting it', async (_name, line) => {
    const { seen, error } = await streamOf((response) => void response.end(event('ADDED', 'a') + line))
    expect(seen).toEqual(['ADDED a'])
    expect(isThvError(error, 'kube_response_malformed')).toBe(true)
    expect(String(error)).not.toContain(line.trim())
  })

  it('half a line at the end is a broken connection; a whole event without its newline counts', async () => {
    const half = await streamOf((response) => void response.end(event('ADDED', 'a') + event('ADDED', 'b').slice(0, -5)))
    expect(half.seen).toEqual(['ADDED a'])
    expect(isThvError(half.error, 'kube_unreachable')).toBe(true)
    const whole = await streamOf((response) => void response.end(event('ADDED', 'a') + event('ADDED', 'b').trimEnd()))
    expect(whole).toEqual({ seen: ['ADDED a', 'ADDED b'], error: undefined })
  })

  it.each([
    ['410 Expired', { code: 410, reason: 'Expired' }, 'kube_watch_expired'],
    ['410 Gone', { code: 410, reason: 'Gone' }, 'kube_watch_expired'],
    ['500', { code: 500, reason: 'InternalError' }, 'kube_status'],
    ['429', { code: 429, reason: 'TooManyRequests', details: { retryAfterSeconds: 4 } }, 'kube_status'],
  ] as const)('ERROR event %s', async (_name, status, code) => {
    const line = `${JSON.stringify({ type: 'ERROR', object: { kind: 'Status', message: 'too old', ...status } })}\n`
    const { seen, error } = await streamOf((response) => void response.write(event('ADDED', 'a') + line))
    expect(seen).toEqual(['ADDED a'])
    expect(isThvError(error, code)).toBe(true)
    expect(String(error)).toContain('watch configmaps: too old')
    if (error instanceof KubeApiError && status.code === 429) expect(error.retryAfterSeconds).toBe(4)
  })

  it('HTTP 410 expires the watch as well, other statuses are KubeApiErrors', async () => {
    for (const [status, code] of [
      [410, 'kube_watch_expired'],
      [403, 'kube_status'],
    ] as const) {
      await withServer(
        (_request, response) => void response.writeHead(status).end('{}'),
        async (client) => {
          const { error } = await drain(client)
          expect(isThvError(error, code)).toBe(true)
        },
      )
    }
  })

  it('a silent stream ends normally, also in the middle of a line', async () => {
    const result = await streamOf((response) => void response.write(event('ADDED', 'a') + event('ADDED', 'b').slice(0, 10)), {
      watchBodyTimeoutMs: 300,
    })
    expect(result).toEqual({ seen: ['ADDED a'], error: undefined })
  })

  it('a reset connection is kube_unreachable with its cause', async () => {
    const { seen, error } = await streamOf(async (response) => {
      response.write(event('ADDED', 'a'))
      await tick()
      response.socket?.resetAndDestroy()
    })
    expect(seen).toEqual(['ADDED a'])
    expect(isThvError(error, 'kube_unreachable')).toBe(true)
    expect((error as Error).cause).toBeInstanceOf(Error)
  })

  it('a server that is not there is kube_unreachable', async () => {
    const server = await startLoopback((_request, response) => void response.end())
    const connection = server.connection()
    await server[Symbol.asyncDispose]()
    const client = createKubeClient(connection, { retry: { baseMs: 1, maxMs: 1 } })
    const { error } = await drain(client)
    expect(error).toMatchObject({ code: 'kube_unreachable', details: { code: 'ECONNREFUSED' } })
    await client.close()
  })

  it('leaving the loop closes the connection', async () => {
    await using server = await startLoopback((_request, response) => void response.write(event('ADDED', 'a')))
    const client = createKubeClient(server.connection())
    for await (const { object } of client.watch(configMaps, { resourceVersion: '5' })) {
      expect(object.metadata.name).toBe('a')
      expect(server.sockets.size).toBe(1)
      break
    }
    await eventually(() => server.sockets.size === 0)
    await client.close()
  })

  it('aborting closes the connection and throws the reason', async () => {
    await using server = await startLoopback((_request, response) => void response.write(event('ADDED', 'a')))
    const client = createKubeClient(server.connection())
    const controller = new AbortController()
    const reason = new Error('enough')
    const watching = drain(client, { signal: controller.signal })
    await eventually(() => server.requests.length === 1)
    controller.abort(reason)
    expect((await watching).error).toBe(reason)
    await eventually(() => server.sockets.size === 0)
    await client.close()
  })

  it('aborting while an event is in the hands of the consumer takes effect at the next step', async () => {
    await using server = await startLoopback((_request, response) => void response.write(event('ADDED', 'a') + event('ADDED', 'b')))
    const client = createKubeClient(server.connection())
    const controller = new AbortController()
    const seen: string[] = []
    const run = async () => {
      for await (const { object } of client.watch(configMaps, { resourceVersion: '5', signal: controller.signal })) {
        seen.push(object.metadata.name)
        controller.abort(new Error('enough'))
        await eventually(() => server.sockets.size === 0)
      }
    }
    await expect(run()).rejects.toThrow('enough')
    expect(seen).toEqual(['a'])
    await client.close()
  })

  it('an aborted signal sends nothing', async () => {
    await using server = await startLoopback((_request, response) => void response.end())
    const client = createKubeClient(server.connection())
    const { error } = await drain(client, { signal: AbortSignal.abort(new Error('before')) })
    expect((error as Error).message).toBe('before')
    expect(server.requests).toHaveLength(0)
    await client.close()
  })

  it('leaves no listener on the signal of its caller', async () => {
    let listeners = 0
    const { signal } = new AbortController()
    const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)]
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners++
      add(...args)
    }
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners--
      remove(...args)
    }
    await withServer(
      (_request, response) => void response.end(event('ADDED', 'a')),
      async (client) => {
        for (let i = 0; i < 3; i++) await drain(client, { signal })
      },
    )
    expect(listeners).toBe(0)
  })

  it('closing the client ends its watches', async () => {
    await using server = await startLoopback((_request, response) => void response.write(event('ADDED', 'a')))
    const client = createKubeClient(server.connection())
    const watching = drain(client)
    await eventually(() => server.requests.length === 1)
    await client.close()
    expect(isThvError((await watching).error, 'aborted')).toBe(true)
    expect(isThvError((await drain(client)).error, 'aborted')).toBe(true)
  })

  it('the time limit is for the opening only', async () => {
    const seen: string[] = []
    const late = await streamOf(async (response) => {
      await new Promise((resolve) => setTimeout(resolve, 150))
      response.end(event('ADDED', 'late'))
    })
    expect(late.seen).toEqual(['ADDED late'])
    const clock = new TestClock()
    let asked = 0
    await withServer(
      async (request, response) => {
        asked++
        if (!request.url.includes('team')) return // never answers
        response.write(event('ADDED', 'early'))
        await eventually(() => seen.length === 1)
        await clock.advance(1_000)
        response.end(event('ADDED', 'late'))
      },
      async (client) => {
        for await (const { object } of client.watch(configMaps, { resourceVersion: '5', timeoutMs: 50, namespace: 'team' }))
          seen.push(object.metadata.name)
        expect(seen).toEqual(['early', 'late'])
        const opening = drain(client, { timeoutMs: 50 })
        await eventually(() => asked === 2)
        await clock.advance(50)
        expect(isThvError((await opening).error, 'kube_unreachable')).toBe(true)
      },
      { clock },
    )
  })

  it('does not read ahead of a slow consumer', async () => {
    const pad = 'x'.repeat(100_000)
    const line = event('ADDED', 'a', { annotations: { pad } })
    let written = 0
    let stopped = false
    await using server = await startLoopback(async (_request, response) => {
      const gone = once(response, 'close').then(() => {
        stopped = true
      })
      while (!stopped && written < 2_000) {
        written++
        if (!response.write(line)) await Promise.race([once(response, 'drain'), gone])
      }
    })
    const client = createKubeClient(server.connection())
    let count = 0
    for await (const _event of client.watch(configMaps, { resourceVersion: '5' })) {
      if (++count < 3) continue
      let before = -1
      while (before !== written) {
        before = written
        await new Promise((resolve) => setTimeout(resolve, 300))
      }
      break
    }
    // 200 MB were to come; what went out fills the sockets' buffers and a little of ours.
    expect(written).toBeLessThan(400)
    await client.close()
  })
})
