import { startFixture } from '@thv/testkit/mcp/fixture'
import { afterEach, expect, it } from 'vitest'
import { runDocument } from './testing/run-document.ts'

const open: AsyncDisposable[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one[Symbol.asyncDispose]()
})

it.each(['modern', 'legacy'] as const)('a runner with limits answers 429 with the time to wait (%s)', async (era) => {
  const fixture = await startFixture({ era })
  open.push(fixture)
  const limits = {
    shared: { maxTokens: 2, refillPeriod: '1h' },
    tools: [{ name: 'who_am_i', shared: { maxTokens: 1, refillPeriod: '1h' } }],
  }
  const running = await runDocument(fixture.url, { rate_limit_config: limits })
  open.push(running)
  const { client } = running
  if (era === 'legacy') await client.initialize()
  const call = (name: string) => (era === 'legacy' ? client.call(name) : client.modernCall(name))
  expect((await call('who_am_i')).status).toBe(200)
  const limited = await call('who_am_i')
  expect(limited).toMatchObject({ status: 429, messages: [{ error: { code: 429, data: { retryAfterSeconds: expect.any(Number) } } }] })
  expect(Number(limited.headers.get('retry-after'))).toBe(limited.messages[0].error.data.retryAfterSeconds)
  expect((await call('echo')).status).toBe(200)
  expect((await call('echo')).status).toBe(429)
  const list = era === 'legacy' ? await client.request('tools/list') : await client.modern('tools/list')
  expect(list.status).toBe(200)
})
