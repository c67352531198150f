import { createHook } from 'node:async_hooks'
import type { HeapProfiler } from 'node:inspector'
import { Session } from 'node:inspector/promises'
import { METHODS } from '@thv/mcp/methods'
import { expect, it } from 'vitest'
import { createHeaderForward } from '../header-forward/header-forward.ts'
import { testContext } from '../testing/test-context.ts'
import { createToolFilter } from '../tool-filter/tool-filter.ts'
import type { Middleware } from './middleware.ts'
import { compilePipeline, type Pipeline } from './pipeline.ts'
import type { MessageContext } from './request-context.ts'

const silent = { warn: () => {} }
/** Every step, as a middleware with warm caches has them. */
const synchronous: Middleware = {
  name: 'synchronous',
  open: () => undefined,
  message: () => undefined,
  prepare: () => undefined,
  headers: () => {},
  edits: [METHODS.toolsList],
  item: (_context, item) => item,
  streaming: () => {},
  end: () => {},
}
const pipeline = compilePipeline([
  synchronous,
  createToolFilter({ filter: ['echo'], overrides: {} }, silent),
  createHeaderForward({ headers: { 'X-Key': 'k' } }, silent),
  synchronous,
])
const context = testContext({ id: 1, method: METHODS.toolsCall, params: { name: 'echo' } })
const set = { 'x-key': 'set' }
const item = { name: 'echo' }

function warmCall(steps: Pipeline, of: MessageContext): void {
  if (steps.open(of) !== undefined || steps.message(of) !== undefined || steps.prepare(of) !== undefined) throw new Error('not synchronous')
  steps.headers(of, set)
  steps.item(of, METHODS.toolsList, item)
  steps.streaming(of)
  steps.end(of)
}

it('a warm call makes no promise and no timer in the pipeline', () => {
  const made: string[] = []
  const hook = createHook({ init: (_id, type) => void made.push(type) }).enable()
  for (let i = 0; i < 100; i++) warmCall(pipeline, context)
  hook.disable()
  expect(made).toEqual([])
})

it('a warm call allocates nothing in the pipeline: no closure, no object', async () => {
  expect(await warmBytes(() => void [context].map((one) => one), 3)).toBeGreaterThan(16) // the measurement sees an array and a closure
  expect(await warmBytes(() => warmCall(pipeline, context))).toBeLessThan(2) // no object is that small: the engine's own bookkeeping
})

/** Bytes per call once the engine has optimized the code, which takes it a while: the least of several rounds. */
async function warmBytes(run: () => void, rounds = 50): Promise<number> {
  const calls = 5_000
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < rounds && least >= 2; round++) least = Math.min(least, (await allocatedBytes(calls, run)) / calls)
  return least
}

/** Bytes that the function allocates on the heap in so many calls, collected garbage included. */
async function allocatedBytes(calls: number, run: () => void): Promise<number> {
  const session = new Session()
  session.connect()
  try {
    await session.post('HeapProfiler.startSampling', {
      samplingInterval: 256,
      includeObjectsCollectedByMajorGC: true,
      includeObjectsCollectedByMinorGC: true,
    } as never)
    for (let i = 0; i < calls; i++) run()
    const { profile } = await session.post('HeapProfiler.stopSampling')
    return bytesOf(profile.head)
  } finally {
    session.disconnect()
  }
}

function bytesOf({ selfSize, children }: HeapProfiler.SamplingHeapProfileNode): number {
  return children.reduce((sum, child) => sum + bytesOf(child), selfSize)
}
