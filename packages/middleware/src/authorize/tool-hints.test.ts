import { TestClock } from '@thv/kernel/clock'
import type { JsonObject } from '@thv/mcp/json-rpc'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { describe, expect, it } from 'vitest'
import { compilePipeline } from '../pipeline/pipeline.ts'
import type { Caller } from '../pipeline/request-context.ts'
import type { ToolsRequest } from '../pipeline/tool-source.ts'
import { authorizeDeps } from '../testing/policy-holder.ts'
import { testContext } from '../testing/test-context.ts'
import { createAuthorize } from './authorize.ts'
import { type CredentialClass, ToolHints } from './tool-hints.ts'

const PERMIT = 'permit(principal, action, resource);'
const NO_DESTRUCTION = '@id("calm") forbid(principal, action, resource) when { resource has destructiveHint && resource.destructiveHint };'
const TOOLS = [
  { name: 'look', annotations: { readOnlyHint: true } },
  { name: 'wipe', annotations: { destructiveHint: true } },
  { name: 'plain' },
]

interface Setup {
  readonly policies?: readonly string[]
  readonly candidate?: readonly string[]
  readonly overrides?: Readonly<Record<string, object>>
  readonly list?: () => Promise<readonly JsonObject[]>
}

function setup({ policies = [PERMIT, NO_DESTRUCTION], candidate, overrides = {}, list = async () => TOOLS }: Setup = {}) {
  const clock = new TestClock()
  const asked: ToolsRequest[] = []
  const classOf = ({ caller }: { caller: Caller }): CredentialClass => ({ key: caller.principal, caller, authorization: undefined })
  const source = {
    tools: (request: ToolsRequest) => {
      asked.push(request)
      return list()
    },
  }
  const log = new CollectingLog()
  const toolHints = new ToolHints({ source, classOf, clock, log })
  const deps = authorizeDeps({ policies, ...(candidate && { candidate }) }, { toolHints, hintOverrides: (name) => overrides[name] })
  const pipeline = compilePipeline([createAuthorize(deps)])
  const call = async (name: string, principal = 'ann') => {
    const context = testContext({ id: 1, method: 'tools/call', params: { name } }, { caller: { principal } })
    const rejection = await pipeline.message(context)
    return { isAllowed: rejection === undefined, authz: context.authz }
  }
  const isListed = (item: JsonObject, principal = 'ann') => {
    const context = testContext({ id: 2, method: 'tools/list' }, { caller: { principal } })
    return pipeline.item(context, 'tools/list', item) !== undefined
  }
  return { clock, asked, call, isListed, log, pipeline }
}

describe('hints of the server', () => {
  it('are asked for again when the server announces another list, at most once a second', async () => {
    let tools: JsonObject[] = TOOLS
    const { asked, call, clock, pipeline } = setup({ list: async () => tools })
    expect((await call('look')).isAllowed).toBe(true)
    tools = [{ name: 'look', annotations: { destructiveHint: true } }]
    await clock.advance(1_000)
    expect([(await call('look')).isAllowed, asked.length]).toEqual([true, 1])
    for (let i = 0; i < 10; i++) pipeline.toolsChanged()
    expect([(await call('look')).isAllowed, asked.length]).toEqual([false, 2])
    for (let i = 0; i < 10; i++) {
      pipeline.toolsChanged()
      await call('look')
    }
    expect(asked).toHaveLength(2)
  })

  it('decide a call as they decide the item in a list', async () => {
    const { call, isListed } = setup()
    for (const tool of TOOLS) expect([tool.name, (await call(tool.name)).isAllowed]).toEqual([tool.name, isListed(tool)])
    expect((await call('wipe')).authz).toMatchObject({ decision: 'deny', policies: ['calm'] })
  })

  it('are asked for once per class of credentials, however many calls wait, and again after five minutes', async () => {
    const { call, asked, clock } = setup()
    const answers = await Promise.all(Array.from({ length: 100 }, (_, at) => call('look', at % 2 === 0 ? 'ann' : 'bob')))
    expect(answers.every(({ isAllowed }) => isAllowed)).toBe(true)
    expect(asked.map(({ caller }) => caller?.principal)).toEqual(['ann', 'bob'])
    await clock.advance(299_000)
    await call('look')
    expect(asked).toHaveLength(2)
    await clock.advance(2_000)
    await call('look')
    expect(asked).toHaveLength(3)
  })

  it('are not asked for where no policy depends on them, and then nothing waits', () => {
    const { pipeline, asked } = setup({ policies: [PERMIT] })
    expect(pipeline.message(testContext({ id: 1, method: 'tools/call', params: { name: 'wipe' } }, {}))).toBeUndefined()
    expect(asked).toEqual([])
  })

  it('are asked for where only a candidate depends on them', async () => {
    const { call, asked } = setup({ policies: [PERMIT], candidate: [PERMIT, NO_DESTRUCTION] })
    expect(await call('wipe')).toMatchObject({ isAllowed: true, authz: { candidate: { decision: 'deny', policies: ['calm'] } } })
    expect(asked).toHaveLength(1)
  })

  it('are asked for where a policy reads them in a record, whatever its members are called', async () => {
    const read = 'resource has destructiveHint && resource.destructiveHint'
    const { call } = setup({ policies: [PERMIT, `forbid(principal, action, resource) when { {attr: ${read}}.attr };`] })
    expect([(await call('wipe')).isAllowed, (await call('look')).isAllowed]).toEqual([false, true])
  })

  it('give way to those of the configuration', async () => {
    const { call } = setup({ overrides: { wipe: { destructiveHint: false }, plain: { destructiveHint: true } } })
    expect([(await call('wipe')).isAllowed, (await call('plain')).isAllowed]).toEqual([true, false])
  })

  it('are asked for again when a list that passes by says otherwise, and for a tool that is new', async () => {
    let tools: JsonObject[] = [...TOOLS]
    const { call, isListed, asked, clock } = setup({ list: async () => tools })
    expect((await call('look')).isAllowed).toBe(true)
    const changed = { name: 'look', annotations: { destructiveHint: true } }
    tools = [changed, { name: 'new' }]
    expect(isListed(changed)).toBe(false)
    await clock.advance(6_000)
    expect((await call('look')).isAllowed).toBe(false)
    expect((await call('new')).isAllowed).toBe(true)
    expect(asked).toHaveLength(2)
  })
})

describe('hints that cannot be obtained', () => {
  const failing = () => setup({ list: () => Promise.reject(new Error('down')) })

  it('open nothing: what depends on them is denied', async () => {
    const { call, log } = failing()
    const { isAllowed, authz } = await call('look')
    expect(isAllowed).toBe(false)
    expect(authz?.errors).toMatchObject([{ policy: 'calm', message: expect.stringContaining('not known') }])
    expect(log.lines.join()).toContain('the hints of tools are not known')
  })

  it('leave decisions alone that do not depend on them', async () => {
    const policies = [
      'permit(principal, action, resource == Tool::"look");',
      'permit(principal, action, resource) when { !(resource has destructiveHint) };',
    ]
    const { call } = setup({ policies, list: () => Promise.reject(new Error('down')) })
    expect([(await call('look')).isAllowed, (await call('wipe')).isAllowed]).toEqual([true, false])
  })

  it('are asked for again, but not with every call', async () => {
    let isDown = true
    const { call, asked, clock } = setup({ list: async () => (isDown ? Promise.reject(new Error('down')) : TOOLS) })
    for (let at = 0; at < 20; at++) expect((await call('look')).isAllowed).toBe(false)
    expect(asked).toHaveLength(1)
    isDown = false
    await clock.advance(6_000)
    expect((await call('look')).isAllowed).toBe(true)
  })

  it('do not make a client wait for longer than ten seconds', async () => {
    const { call, clock } = setup({ list: () => new Promise(() => {}) })
    const waiting = call('look')
    await clock.advance(10_000)
    expect((await waiting).isAllowed).toBe(false)
  })

  it('are those of a tool that the server does not list, too', async () => {
    const { call } = setup()
    expect((await call('hidden')).isAllowed).toBe(false)
  })
})
