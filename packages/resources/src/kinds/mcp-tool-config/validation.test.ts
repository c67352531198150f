import { normaliseMcpToolConfig } from '@thv/resources/kinds/mcp-tool-config/normalise'
import type { MCPToolConfig } from '@thv/resources/kinds/mcp-tool-config/schema'
import { fixturesOf } from '@thv/resources/testing/fixtures'
import { readRunConfig } from '@thv/runconfig/read-run-config'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { validateToolConfig } from './validation.ts'

const validate = (spec: MCPToolConfig['spec']) => validateToolConfig(normaliseMcpToolConfig({ ...(spec && { spec }) }).spec)

describe('validateToolConfig', () => {
  it.each(fixturesOf('mcptoolconfigs'))('finds nothing wrong with $manifest.metadata.name', ({ manifest }) => {
    expect(validate(manifest.spec as MCPToolConfig['spec'])).toEqual({ problems: [], warnings: [] })
  })

  it('takes an empty configuration, which changes nothing', () => {
    expect(validate(undefined)).toEqual({ problems: [], warnings: [] })
  })

  it.each<[string, NonNullable<MCPToolConfig['spec']>, string]>([
    ['an override that is empty', { toolsOverride: { fetch: {} } }, 'toolsOverride.fetch changes nothing'],
    ['an override with empty hints', { toolsOverride: { fetch: { annotations: {} } } }, 'toolsOverride.fetch changes nothing'],
    ['an empty description', { toolsOverride: { fetch: { description: '' } } }, 'toolsOverride.fetch.description is empty'],
    ['an empty new name', { toolsOverride: { fetch: { name: '' } } }, 'toolsOverride.fetch.name holds an empty name'],
    ['an empty key', { toolsOverride: { '': { name: 'a' } } }, 'empty key'],
    ['a comma in a new name', { toolsOverride: { fetch: { name: 'a,b' } } }, 'must not contain a comma'],
    ['a line end in a key', { toolsOverride: { 'a\nb': { name: 'c' } } }, 'must not contain a comma or a line end'],
    ['an empty entry of the filter', { toolsFilter: [''] }, 'toolsFilter holds an empty name'],
    [
      'two tools that get one name',
      { toolsOverride: { search: { name: 'find' }, lookup: { name: 'find' } } },
      'gives lookup and search the same name find',
    ],
    [
      'a tool that gets the name of another one that keeps it',
      { toolsOverride: { search: { name: 'find' }, find: { description: 'Finds things' } } },
      'gives find and search the same name find',
    ],
  ])('refuses %s', (_, spec, message) => {
    expect(validate(spec).problems.join()).toContain(message)
  })

  it('lets two tools swap their names', () => {
    expect(validate({ toolsOverride: { a: { name: 'b' }, b: { name: 'a' } } })).toEqual({ problems: [], warnings: [] })
  })

  it('warns of a filter entry that names only the real name of a renamed tool', () => {
    const { problems, warnings } = validate({ toolsFilter: ['fetch', 'other'], toolsOverride: { fetch: { name: 'fetch_page' } } })
    expect(problems).toEqual([])
    expect(warnings).toEqual(['toolsFilter names fetch, which clients see as fetch_page, so it matches no tool: write fetch_page'])
  })

  it('does not warn when the name is both the real name of one tool and the new name of another', () => {
    const swapped = { toolsFilter: ['a'], toolsOverride: { a: { name: 'b' }, c: { name: 'a' } } }
    expect(validate(swapped).warnings).toEqual([])
  })

  it('warns of a new name that is the old one', () => {
    expect(validate({ toolsOverride: { a: { name: 'a' } } }).warnings).toEqual([
      'toolsOverride.a.name is the name that the tool has anyway',
    ])
  })

  it('lets nothing through that the runner would refuse', () => {
    const name = fc.oneof(fc.constantFrom('a', 'b', 'c', '', 'x,y', 'l\nm'), fc.string({ maxLength: 4 }))
    const override = fc.record(
      { name, description: fc.constantFrom('', 'text'), annotations: fc.constantFrom({}, { title: 'T' }) },
      { requiredKeys: [] },
    )
    const spec = fc.record({
      toolsFilter: fc.uniqueArray(name, { maxLength: 3 }),
      toolsOverride: fc.dictionary(name, override, { maxKeys: 3 }),
    })
    fc.assert(
      fc.property(spec, ({ toolsFilter, toolsOverride }) => {
        fc.pre(validate({ toolsFilter, toolsOverride }).problems.length === 0)
        const document = { name: 'x', image: 'i', transport: 'stdio', tools_filter: toolsFilter, tools_override: toolsOverride }
        expect(readRunConfig(JSON.parse(JSON.stringify(document)))).toMatchObject({ ok: true })
      }),
    )
  })
})
