import type { MutableHeaderMap } from '@thv/http/header-map'
import { reject } from '@thv/mcp/wire-errors'
import { describe, expect, it } from 'vitest'
import { testContext, testHop } from '../testing/test-context.ts'
import { type Middleware, setHeader } from './middleware.ts'
import { compilePipeline } from './pipeline.ts'

const CALL = { id: 1, method: 'tools/call', params: { name: 'a' } }

/** A middleware with every step; each notes that it ran. */
function noting(name: string, steps: string[], overrides: Partial<Middleware> = {}): Middleware {
  const note = (step: string) => {
    steps.push(`${name} ${step}`)
    return undefined
  }
  return {
    name,
    open: () => note('open'),
    message: () => note('message'),
    prepare: () => note('prepare'),
    headers: () => note('headers'),
    edits: ['tools/list'],
    item: (_context, item) => {
      note('item')
      return item
    },
    streaming: () => note('streaming'),
    end: () => note('end'),
    ...overrides,
  }
}

describe('the steps of a pipeline', () => {
  it('run in order; item and end in reverse', () => {
    const steps: string[] = []
    const pipeline = compilePipeline([noting('a', steps), noting('b', steps)])
    const context = testContext(CALL)
    for (const step of ['open', 'message', 'prepare'] as const) expect(pipeline[step](context)).toBeUndefined()
    pipeline.headers(context, {})
    pipeline.streaming(context)
    const item = { name: 'x' }
    expect(pipeline.item(context, 'tools/list', item)).toBe(item)
    pipeline.end(context)
    const expected = ['open', 'message', 'prepare', 'headers', 'streaming'].flatMap((step) => [`a ${step}`, `b ${step}`])
    expect(steps).toEqual([...expected, 'b item', 'a item', 'b end', 'a end'])
    expect(context.outcome).toBe('ok')
  })

  it.each(['open', 'message', 'prepare'] as const)('%s ends with the first rejection, synchronous or not', async (step) => {
    for (const isAsync of [false, true]) {
      const steps: string[] = []
      const rejection = reject('internal_error')
      const rejecting = noting('b', steps, { [step]: () => (isAsync ? Promise.resolve(rejection) : rejection) })
      const pipeline = compilePipeline([noting('a', steps), rejecting, noting('c', steps)])
      const outcome = pipeline[step](testContext(CALL))
      expect(outcome instanceof Promise).toBe(isAsync)
      expect(await outcome).toBe(rejection)
      expect(steps).toEqual([`a ${step}`])
    }
  })

  it('go on after one that waited', async () => {
    const steps: string[] = []
    const waiting = noting('b', steps, {
      async message() {
        await Promise.resolve()
        steps.push('b waited')
        return undefined
      },
    })
    const pipeline = compilePipeline([noting('a', steps), waiting, noting('c', steps)])
    expect(await pipeline.message(testContext(CALL))).toBeUndefined()
    expect(steps).toEqual(['a message', 'b waited', 'c message'])
  })

  it('keep the `this` of a class', () => {
    class Counting implements Middleware {
      readonly name = 'counting'
      opened = 0
      open() {
        this.opened++
        return undefined
      }
    }
    const counting = new Counting()
    void compilePipeline([counting]).open(testContext(CALL))
    expect(counting.opened).toBe(1)
  })

  it('end all run, also when one throws', () => {
    const steps: string[] = []
    const failing: Middleware = {
      name: 'failing',
      end() {
        throw new Error('broken')
      },
    }
    const pipeline = compilePipeline([noting('a', steps), failing])
    expect(() => pipeline.end(testContext(CALL))).toThrow('broken')
    expect(steps).toEqual(['a end'])
    expect([pipeline.observesEnd, compilePipeline([]).observesEnd]).toEqual([true, false])
  })

  it('close waits for all middleware', async () => {
    const closed: string[] = []
    const closing = (name: string): Middleware => ({
      name,
      async close() {
        await Promise.resolve()
        closed.push(name)
      },
    })
    await compilePipeline([closing('a'), { name: 'b' }, closing('c')]).close(AbortSignal.timeout(10_000))
    expect(closed.toSorted()).toEqual(['a', 'c'])
  })
})

describe('headers for a backend', () => {
  const setting = (name: string, value: string): Middleware => ({ name: value, headers: (_hop, set) => setHeader(set, name, value) })

  it('are set by the first who sets a name, and by credentials before all', () => {
    const pipeline = compilePipeline([setting('x-a', 'first'), setting('x-a', 'second'), setting('authorization', 'forwarded')])
    const set: MutableHeaderMap = { 'mcp-session-id': 's' }
    pipeline.headers(testHop({ credentials: { authorization: 'Bearer ours', 'mcp-session-id': 'never' } }), set)
    expect(set).toEqual({ 'mcp-session-id': 's', authorization: 'Bearer ours', 'x-a': 'first' })
  })

  it('leave out withheld headers of the client unless somebody sets them', () => {
    const withholding: Middleware = { name: 'auth', withholds: ['authorization', 'cookie'] }
    const set: MutableHeaderMap = {}
    compilePipeline([withholding, setting('cookie', 'ours')]).headers(testHop(), set)
    expect(set).toEqual({ authorization: undefined, cookie: 'ours' })
    expect(Object.hasOwn(set, 'authorization')).toBe(true)
  })

  it('credentialsRejected asks every middleware', () => {
    const asked: string[] = []
    const forgetting = (name: string, forgets: boolean): Middleware => ({
      name,
      credentialsRejected() {
        asked.push(name)
        return forgets
      },
    })
    expect(compilePipeline([forgetting('a', true), forgetting('b', false)]).credentialsRejected(testHop())).toBe(true)
    expect(compilePipeline([forgetting('c', false)]).credentialsRejected(testHop())).toBe(false)
    expect(asked).toEqual(['a', 'b', 'c'])
  })
})
