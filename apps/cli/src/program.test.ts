import { KINDS } from '@thv/resources/kinds/kinds'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { runThv } from './testing/run-thv.ts'

async function thv(...args: string[]): Promise<string> {
  const { out, error } = await runThv(args)
  if (error) throw error
  return out
}

const COMMANDS = [
  'up',
  'down',
  'status',
  'ls',
  'rm',
  'tools',
  'call',
  'login',
  'logout',
  'search',
  'apply',
  'get',
  'describe',
  'delete',
  'logs',
  'crds',
  'version',
  'completion',
]

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
    await expect(thv('crds', 'nope')).rejects.toThrow(/unknown kind "nope"; available kinds are .*MCPGroup/)
  })
})

describe('wrong words', () => {
  it.each([
    [['nope'], 'unknown command "nope". See "thv help".'],
    [['tolls'], 'unknown command "tolls". Did you mean "tools"? See "thv help".'],
    [['help', 'nope'], 'unknown command "nope"'],
    [['completion', 'tcsh'], 'Allowed choices are bash, zsh, fish'],
    [['rm'], "missing required argument 'name'"],
    [['crds', '--nope'], "unknown option '--nope'"],
    [['--nope'], "unknown option '--nope'"],
    [['tools'], "missing required argument 'server'"],
    [['call', 'http://127.0.0.1:1/mcp'], "missing required argument 'tool'"],
    [['tools', 'x', '-o', 'yaml'], 'Allowed choices are table, json. See "thv tools --help".'],
    [['apply'], 'nothing to apply: set -f'],
  ])('%j: %s', async (args, message) => {
    await expect(thv(...args)).rejects.toMatchObject({ code: 'usage', message: expect.stringContaining(message) })
  })

  it('prints no line of help that is longer than 100 columns', async () => {
    const pages = await Promise.all([thv(), thv('help'), ...COMMANDS.map((command) => thv('help', command))])
    expect(pages.flatMap((page) => page.split('\n')).filter((line) => line.length > 100)).toEqual([])
  })

  it('has help, version and short names', async () => {
    expect(await thv('help')).toBe(await thv('--help'))
    expect(await thv('help', 'apply')).toBe(await thv('apply', '--help'))
    expect(await thv('help')).toMatch(/^ {2}ls, list .*list MCP servers/m)
    expect(await thv('version')).toMatch(/^thv \d+\.\d+\.\d+, Node v\d+\.\d+\.\d+, \w+-\w+\n$/)
  })

  it('prints help when asked', async () => {
    expect(await thv('--help')).toContain('crds')
    expect(await thv('crds', '--help')).toContain('kubectl apply')
    expect(await thv('apply', '--help')).not.toContain('[]')
    expect(await thv('--version')).toMatch(/^\d+\.\d+\.\d+\n$/)
  })
})
