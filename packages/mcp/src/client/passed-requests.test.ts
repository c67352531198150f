import type { CancelListener, Cancellation } from '@thv/http/cancellation'
import { ThvError } from '@thv/kernel/errors'
import { describe, expect, it, vi } from 'vitest'
import type { RequestId } from '../json-rpc.ts'
import type { PassOptions } from './mcp-client.ts'
import { connectPeers } from './testing/fixture-client.ts'

/** As calls have one. Its signal is made when it is asked for, and counted. */
class Ending implements Cancellation {
  aborted = false
  reason: unknown
  signals = 0
  readonly #controller = new AbortController()
  #listener: CancelListener | undefined

  get signal(): AbortSignal {
    this.signals++
    return this.#controller.signal
  }

  addEventListener(_type: 'abort', listener: CancelListener): void {
    expect(this.#listener).toBeUndefined()
    this.#listener = listener
  }

  removeEventListener(_type: 'abort', listener: CancelListener): void {
    if (this.#listener === listener) this.#listener = undefined
  }

  get isHeard(): boolean {
    return this.#listener !== undefined
  }

  cancel(reason: ThvError): void {
    this.aborted = true
    this.reason = reason
    this.#listener?.handleEvent()
    this.#controller.abort(reason)
  }
}

function passed(name: string, ending: Ending, args: object = {}): PassOptions {
  const write = (id: RequestId) => JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } })
  return {
    get signal() {
      return ending.signal
    },
    ...{ cancellation: ending, write, answerId: 'own' },
  }
}

const UNLIMITED = { client: { limits: { timeoutMs: Number.POSITIVE_INFINITY } } }

describe('requests that are passed on to a legacy server', () => {
  it('come back as text, and need no signal', async () => {
    await using peers = await connectPeers({ era: 'legacy', ...UNLIMITED })
    const ending = new Ending()
    const answer = await peers.client.pass(
      'tools/call',
      { name: 'echo', arguments: { text: 'hi' } },
      passed('echo', ending, { text: 'hi' }),
    )
    expect(typeof answer === 'string' && JSON.parse(answer)).toMatchObject({ id: 'own', result: { content: [{ type: 'text' }] } })
    expect([ending.signals, ending.isHeard]).toEqual([0, false])
  })

  it('end at once when they are cancelled, and the server hears of it', async () => {
    await using peers = await connectPeers({ era: 'legacy', ...UNLIMITED })
    const ending = new Ending()
    const hanging = peers.client.pass('tools/call', { name: 'hang', arguments: {} }, passed('hang', ending))
    await vi.waitFor(() => expect(peers.fixture.stats.count('tools/call')).toBe(1), 10_000)
    ending.cancel(new ThvError('timeout', 'too long'))
    await expect(hanging).rejects.toMatchObject({ code: 'timeout', message: 'too long' })
    await vi.waitFor(() => expect(peers.fixture.stats.cancelled).toMatchObject([{ name: 'hang' }]), 10_000)
  })

  it('end with the client', async () => {
    await using peers = await connectPeers({ era: 'legacy', ...UNLIMITED })
    const hanging = peers.client.pass('tools/call', { name: 'hang', arguments: {} }, passed('hang', new Ending()))
    await vi.waitFor(() => expect(peers.fixture.stats.count('tools/call')).toBe(1), 10_000)
    const ended = expect(hanging).rejects.toMatchObject({ code: 'aborted' })
    await peers.client.close()
    await ended
    await expect(peers.client.pass('tools/call', { name: 'echo' }, passed('echo', new Ending()))).rejects.toMatchObject({ code: 'aborted' })
  })

  it('are sent once more in a new session when the server has forgotten the old one', async () => {
    await using peers = await connectPeers({ era: 'legacy', ...UNLIMITED })
    const echo = () =>
      peers.client.pass('tools/call', { name: 'echo', arguments: { text: 'a' } }, passed('echo', new Ending(), { text: 'a' }))
    await echo()
    peers.fixture.admin.forgetSessions()
    const answers = await Promise.all([echo(), echo(), echo()])
    for (const answer of answers) expect(typeof answer === 'string' && JSON.parse(answer)).toMatchObject({ id: 'own' })
    expect(peers.fixture.stats.sessions).toBe(1)
  })

  it('go to no server when they are cancelled before', async () => {
    await using peers = await connectPeers({ era: 'legacy', ...UNLIMITED })
    const ending = new Ending()
    ending.cancel(new ThvError('aborted', 'gone'))
    await expect(peers.client.pass('tools/call', { name: 'echo' }, passed('echo', ending))).rejects.toMatchObject({ message: 'gone' })
    expect(peers.fixture.stats.count('tools/call')).toBe(0)
  })
})

describe.each(['legacy', 'modern'] as const)('requests with a cancellation of their own to a %s server', (era) => {
  const options = (ending: Ending) => ({
    get signal() {
      return ending.signal
    },
    cancellation: ending,
  })

  it('need no signal', async () => {
    await using peers = await connectPeers({ era, ...UNLIMITED })
    const ending = new Ending()
    const answer = await peers.client.request('tools/call', { name: 'echo', arguments: { text: 'hi' } }, options(ending))
    expect(answer).toMatchObject({ content: [{ type: 'text' }] })
    expect([ending.signals, ending.isHeard]).toEqual([0, false])
  })

  it('end at once when they are cancelled, and the server hears of it', async () => {
    await using peers = await connectPeers({ era, ...UNLIMITED })
    const ending = new Ending()
    const hanging = peers.client.request('tools/call', { name: 'hang', arguments: {} }, options(ending))
    await vi.waitFor(() => expect(peers.fixture.stats.count('tools/call')).toBe(1), 10_000)
    ending.cancel(new ThvError('timeout', 'too long'))
    await expect(hanging).rejects.toMatchObject({ code: 'timeout', message: 'too long' })
    await vi.waitFor(() => expect(peers.fixture.stats.cancelled).toMatchObject([{ name: 'hang' }]), 10_000)
  })

  it('end with the client, and begin no more after it', async () => {
    await using peers = await connectPeers({ era, ...UNLIMITED })
    const hanging = peers.client.request('tools/call', { name: 'hang', arguments: {} }, options(new Ending()))
    await vi.waitFor(() => expect(peers.fixture.stats.count('tools/call')).toBe(1), 10_000)
    const ended = expect(hanging).rejects.toMatchObject({ code: 'aborted' })
    await peers.client.close()
    await ended
    await expect(peers.client.request('tools/call', { name: 'echo' }, options(new Ending()))).rejects.toMatchObject({ code: 'aborted' })
  })
})
