import { describe, expect, it } from 'vitest'
import { createKubeClient } from '../client/client.ts'
import { bearerToken } from '../client/connection.ts'
import { collect } from '../testing/collect.ts'
import { eventually, type Handler, type LoopbackServer, sendStatus, startLoopback } from '../testing/loopback-server.ts'
import { type PodLogsOptions, podLogLines, podLogs } from './pod-logs.ts'

const place = { namespace: 'team', pod: 'web-0' }

function clientOf(server: LoopbackServer) {
  return createKubeClient(server.connection(bearerToken('t')), { watchBodyTimeoutMs: 100, retry: { baseMs: 1, maxMs: 1 } })
}

async function linesOf(handler: Handler, options: Partial<PodLogsOptions & { maxLineBytes: number }> = {}): Promise<string[]> {
  await using server = await startLoopback(handler)
  const client = clientOf(server)
  try {
    return await collect(podLogLines(client, { ...place, ...options }))
  } finally {
    await client.close()
  }
}

describe('podLogs', () => {
  it('asks for what was asked for, and nothing else', async () => {
    await using server = await startLoopback((_request, response) => void response.end('hello'))
    const client = clientOf(server)
    const options = { container: 'mcp', follow: true, tailLines: 10, sinceSeconds: 60, previous: true, timestamps: true, limitBytes: 1000 }
    expect(Buffer.concat(await collect(podLogs(client, { ...place, ...options }))).toString()).toBe('hello')
    await collect(podLogs(client, place))
    expect(server.requests.map(({ url }) => url)).toEqual([
      '/api/v1/namespaces/team/pods/web-0/log?container=mcp&follow=true&tailLines=10&sinceSeconds=60&previous=true&timestamps=true&limitBytes=1000',
      '/api/v1/namespaces/team/pods/web-0/log',
    ])
    expect(server.requests[0]?.headers.authorization).toBe('Bearer t')
    await client.close()
  })

  it('throws the refusal of the server', async () => {
    await expect(linesOf((_request, response) => sendStatus(response, 400, { reason: 'BadRequest' }))).rejects.toMatchObject({
      status: 400,
      reason: 'BadRequest',
    })
  })

  it('survives silence that a watch would not', async () => {
    const lines = await linesOf((_request, response) => {
      response.write('before\n')
      setTimeout(() => response.end('after\n'), 1_300) // undici looks once a second or so
    })
    expect(lines).toEqual(['before', 'after'])
  })

  it('is kube_unreachable when the connection breaks', async () => {
    const got: string[] = []
    await using server = await startLoopback((_request, response) => {
      response.write('one\ntw')
      setTimeout(() => response.destroy(), 20)
    })
    const client = clientOf(server)
    const reading = (async () => {
      for await (const line of podLogLines(client, place)) got.push(line)
    })()
    await expect(reading).rejects.toMatchObject({ code: 'kube_unreachable' })
    expect(got).toEqual(['one'])
    await client.close()
  })

  it('ends with the reason of the signal, and closes the connection when the reader leaves', async () => {
    await using server = await startLoopback((_request, response) => void response.write('one\n'))
    const client = clientOf(server)
    const stop = new AbortController()
    const reading = (async () => {
      for await (const _line of podLogLines(client, { ...place, follow: true, signal: stop.signal })) stop.abort(new Error('enough'))
    })()
    await expect(reading).rejects.toThrow('enough')
    for await (const line of podLogLines(client, { ...place, follow: true })) {
      expect(line).toBe('one')
      break
    }
    await eventually(() => server.sockets.size === 0)
    await client.close()
  })
})

describe('podLogLines', () => {
  it('joins what chunks split, characters too, and keeps a last line without its end', async () => {
    const bytes = Buffer.from('ä\r\n\nb🥊c\nlast')
    const lines = await linesOf(async (_request, response) => {
      for (const byte of bytes) {
        response.write(Buffer.from([byte]))
        await new Promise((resolve) => setImmediate(resolve))
      }
      response.end()
    })
    expect(lines).toEqual(['ä', '', 'b🥊c', 'last'])
  })

  it('cuts a line that is too long, at a whole character, and goes on with the next', async () => {
    const lines = await linesOf(
      (_request, response) => void response.end(`${'ä'.repeat(100_000)}\nshort\n${'x'.repeat(11)}\n${'x'.repeat(10)}`),
      {
        maxLineBytes: 11,
      },
    )
    expect(lines).toEqual([`${'ä'.repeat(5)}…`, 'short', 'x'.repeat(11), 'x'.repeat(10)])
  })
})
