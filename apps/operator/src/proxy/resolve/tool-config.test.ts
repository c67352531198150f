import type { MCPToolConfig } from '@thv/resources/kinds/mcp-tool-config/schema'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { blockersOf, contributionOf, runnerReads, snapshot } from './testing/snapshot.ts'
import { resolveToolConfig } from './tool-config.ts'

type Spec = NonNullable<MCPToolConfig['spec']>
const resolve = (spec: Spec | undefined, status?: MCPToolConfig['status']) =>
  resolveToolConfig({
    toolConfigRef: { name: 'tc' },
    lookup: snapshot({ toolConfigs: { tc: { ...(spec && { spec }), ...(status && { status }) } } }),
  })

describe('resolveToolConfig', () => {
  it('takes the tools of the spec where nothing is referenced', () => {
    expect(contributionOf(resolveToolConfig({ toolConfigRef: undefined, lookup: snapshot() }))).toEqual({})
    expect(contributionOf(resolveToolConfig({ toolConfigRef: undefined, tools: ['a'], lookup: snapshot() }))).toEqual({
      runConfig: { tools_filter: ['a'] },
    })
  })

  it('takes filter and overrides of the MCPToolConfig, hints included', () => {
    const toolsOverride = {
      a: { name: 'b', description: 'B', annotations: { readOnlyHint: true, title: 'T' } },
      c: { annotations: { destructiveHint: false } },
    }
    const { runConfig, conditions, status } = contributionOf(resolve({ toolsFilter: ['b'], toolsOverride }))
    expect(runConfig).toEqual({ tools_filter: ['b'], tools_override: toolsOverride })
    expect(conditions).toMatchObject([{ type: 'ToolConfigValidated', status: 'True', reason: 'ToolConfigValid' }])
    expect(status?.['toolConfigHash']).toMatch(/^[0-9a-f]{16}$/)
  })

  it('is content with one that says nothing', () => {
    expect(contributionOf(resolve(undefined)).runConfig).toEqual({})
  })

  it('is blocked by one that does not exist', () => {
    expect(blockersOf(resolveToolConfig({ toolConfigRef: { name: 'tc' }, lookup: snapshot() }))).toEqual([
      {
        condition: 'ToolConfigValidated',
        reason: 'ToolConfigNotFound',
        message: 'spec.toolConfigRef names MCPToolConfig tc, which does not exist: create it, or remove the reference',
      },
    ])
  })

  it('is blocked by one that is invalid, with its own reason, whatever its status still says', () => {
    const condition = {
      type: 'Valid',
      status: 'True' as const,
      reason: 'ValidationSucceeded',
      message: '',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    }
    const spec = { toolsOverride: { a: { name: 'x' }, b: { name: 'x' } } }
    for (const status of [undefined, { conditions: [condition] }])
      expect(blockersOf(resolve(spec, status))).toMatchObject([
        {
          condition: 'ToolConfigValidated',
          reason: 'ValidationFailed',
          message: expect.stringContaining('MCPToolConfig tc cannot be used: '),
        },
      ])
  })

  it('whatever it says: it is blocked with a reason, or the runner reads it', () => {
    const tool = fc.constantFrom('a', 'b', 'fetch_url', 'a,b', 'with\nbreak', '__proto__', ' ')
    const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })
    const override = fc
      .record({
        name: optional(tool),
        description: optional(fc.string()),
        annotations: optional(fc.record({ readOnlyHint: fc.boolean() })),
      })
      .map((value) => JSON.parse(JSON.stringify(value)))
    const specs = fc.record({ toolsFilter: fc.uniqueArray(tool), toolsOverride: fc.dictionary(tool, override) })
    fc.assert(
      fc.property(specs, (spec) => {
        const resolved = resolve(spec)
        if (resolved.ok) runnerReads(resolved.contribution)
        else expect(resolved.blockers.length).toBeGreaterThan(0)
      }),
    )
  })
})
