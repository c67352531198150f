import { KINDS } from '@thv/resources/kinds/kinds'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { runThv } from './testing/run-thv.ts'

async function thv(...args: string[]): Promise<string> {
  const { out, error } = await runThv(args)
  if (error) throw error
  return out
}

describe('thv', () => {
  it('without a command names every kind and what to try next', async () => {
    const text = await thv()
    for (const { kind } of KINDS) expect(text).toContain(kind)
    expect(text).toContain('npx thv crds | kubectl apply -f -')
  })
})

describe('thv crds', () => {
  it('prints one definition per kind as a YAML stream', async () => {
    const documents = parseAllDocuments(await thv('crds')).map((document) => document.toJSON())
    expect(documents.map((document) => document.spec.names.kind)).toEqual(KINDS.map((definition) => definition.kind))
    expect(documents.every((document) => document.kind === 'CustomResourceDefinition')).toBe(true)
  })

  it('prints only the named ones, by kind, plural or short name', async () => {
    const documents = parseAllDocuments(await thv('crds', 'MCPGroup', 'mcptoolconfigs', 'mcpg')).map((document) => document.toJSON())
    expect(documents.map((document) => document.spec.names.kind)).toEqual(['MCPGroup', 'MCPToolConfig', 'MCPGroup'])
  })

  it('says which kinds there are when the name is wrong', async () => {
    await expect(thv('crds', 'nope')).rejects.toThrow(/there is no kind "nope"; there are .*MCPGroup/)
  })
})

describe('wrong words', () => {
  it.each([
    [['nope'], 'there is no command "nope"'],
    [['crds', '--nope'], "unknown option '--nope'"],
    [['--nope'], "unknown option '--nope'"],
    [['tools'], "missing required argument 'server'"],
    [['call', 'http://127.0.0.1:1/mcp'], "missing required argument 'tool'"],
    [['tools', 'x', '-o', 'yaml'], 'Allowed choices are table, json; "thv tools --help" lists what there is'],
    [['apply'], 'say what to apply: -f FILE'],
  ])('%j: %s', async (args, message) => {
    await expect(thv(...args)).rejects.toMatchObject({ code: 'usage', message: expect.stringContaining(message) })
  })

  it('prints help when asked', async () => {
    expect(await thv('--help')).toContain('crds')
    expect(await thv('crds', '--help')).toContain('kubectl apply')
    expect(await thv('apply', '--help')).not.toContain('[]')
    expect(await thv('--version')).toMatch(/^\d+\.\d+\.\d+\n$/)
  })
})
