import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readRunConfig } from '@thv/runconfig/read-run-config'
import { describe, expect, it } from 'vitest'
import { explainAccess } from './explain-access.ts'
import { subjectOf, withPolicies } from './explain-command.ts'

const POLICIES = [
  '@id("support")\npermit(principal in THVGroup::"support", action, resource == Tool::"find");',
  '@id("no-delete") forbid(principal, action, resource == Tool::"delete");',
  '@id("writers") @scope("orders:write") permit(principal, action, resource == Tool::"write");',
  '@id("small") permit(principal, action, resource == Tool::"refund") when { context.arg_amount < 100 };',
]

function configOf(more: object = {}) {
  const authz = { version: '1.0', type: 'cedarv1', cedar: { policies: POLICIES } }
  const base = { name: 'orders', transport: 'streamable-http', remote_url: 'https://example.com/mcp', authz_config: authz }
  const read = readRunConfig({ ...base, ...more })
  if (!read.ok) throw new TypeError(JSON.stringify(read.problems))
  return read.config
}
const ANN = { subject: 'ann', claims: { sub: 'ann', groups: ['support'], scope: 'openid' } }
const explain = (tool: string | undefined, args = {}, subject: typeof ANN | undefined = ANN, more = {}) =>
  explainAccess(configOf(more), { subject, tool, args })

describe('explainAccess', () => {
  it('names the policy that permits, with its text', () => {
    const text = explain('find')
    expect(text).toContain('caller Client::"ann", in THVGroup::support, with scopes openid')
    expect(text).toContain('tools/call find: allowed')
    expect(text).toContain('permit support:\n  @id("support")\n  permit(principal in THVGroup::"support"')
  })

  it('names the policy that forbids, the one that fails, and the scopes that would help', () => {
    expect(explain('delete')).toMatch(/denied; not in lists\n\nforbid no-delete:/)
    expect(explain('refund')).toMatch(/denied\n\nsmall fails, which denies the call: .*arg_amount/)
    expect(explain('refund', { amount: 5 })).toContain('allowed')
    expect(explain('write')).toContain('A token with these scopes would be allowed: orders:write')
    expect(explain('other')).toContain('No policy permits it.')
  })

  it('shows how candidate policies decide', () => {
    const candidate = {
      policies: [
        '@id("all-find") permit(principal, action, resource == Tool::"find");',
        '@id("new") permit(principal, action, resource == Tool::"audit");',
      ],
    }
    const more = { authz_config: { version: '1.0', type: 'cedarv1', cedar: { policies: POLICIES }, candidate } }
    expect(explain('find', {}, ANN, more)).toMatch(
      /tools\/call find: allowed\n\npermit support:[\s\S]*\ncandidate policies, which are not enforced, decide the same:\n {2}tools\/call find: allowed\n\n {2}permit all-find:/,
    )
    expect(explain('write', {}, ANN, more)).toMatch(
      /decide otherwise:\n {2}tools\/call write: denied; not in lists\n\n {2}No policy permits it/,
    )
    expect(explain(undefined, {}, ANN, more)).toContain('  audit: hidden; shown by the candidate policies\n')
    expect(explain(undefined, {}, ANN, more)).toContain('  find: shown\n')
    const broken = { version: '1.0', type: 'cedarv1', cedar: { policies: POLICIES }, candidate: { policies: ['permit('] } }
    expect(() => explain('find', {}, ANN, { authz_config: broken })).toThrow(/do not work: candidate\.policies\[0\]/)
  })

  it('takes the policies of the file that the proxy mounts', () => {
    const { authz_config, ...config } = configOf({ authz_config: undefined, authz_config_path: '/etc/toolhive/authz/authz.json' })
    const document = { version: '1.0', type: 'cedarv1', cedar: { policies: ['permit(principal, action, resource == Tool::"find");'] } }
    const ask = (text: string) => explainAccess(withPolicies(config, text), { subject: ANN, tool: 'find', args: {} })
    expect(authz_config).toBeUndefined()
    expect(ask(JSON.stringify(document))).toContain('tools/call find: allowed')
    expect(() => ask('{}')).toThrow(/the policies of orders do not work: type is required/)
    expect(() => explainAccess(config, { subject: ANN, tool: 'find', args: {} })).toThrow(/cannot be read from here/)
  })

  it('knows renamed tools and limits', () => {
    const more = {
      tools_override: { find: { name: 'lookup' } },
      rate_limit_config: {
        shared: { max_tokens: 5, refill_period: '1m' },
        tools: [{ name: 'lookup', shared: { max_tokens: 1, refill_period: '1s' } }],
      },
    }
    const text = explain('lookup', {}, ANN, more)
    expect(text).toContain('tools/call lookup: allowed')
    expect(text).toContain('all callers: 5 calls per 1m')
    expect(text).toContain('all callers of lookup: 1 calls per 1s')
  })

  it('knows tools that no client has, whatever the policies say', () => {
    const hidden = /^tools\/call find: denied; not in lists\n\nThe tool configuration of orders hides it/
    for (const authz_config of [configOf().authz_config, undefined]) {
      expect(explain('find', {}, ANN, { authz_config, tools_filter: ['write'] })).toMatch(hidden)
      expect(explain('find', {}, ANN, { authz_config, tools_override: { find: { name: 'lookup' } } })).toMatch(hidden)
    }
    expect(explain('find', {}, ANN, { tools_filter: ['find'], tools_override: { find: { description: 'x' } } })).toContain('find: allowed')
  })

  it('never takes policies in a file of the proxy for none', () => {
    const inFile = configOf({ authz_config: undefined, authz_config_path: '/etc/authz/policies.yaml' })
    for (const tool of ['find', undefined])
      expect(() => explainAccess(inFile, { subject: ANN, tool, args: {} })).toThrow('/etc/authz/policies.yaml of its proxy, which cannot')
    const without = configOf({ authz_config: undefined })
    expect(explainAccess(without, { subject: ANN, tool: 'find', args: {} })).toContain('orders has no policies')
  })

  it('without a tool lists the tools that policies name', () => {
    expect(explainAccess(configOf(), { subject: undefined, tool: undefined, args: {} })).toBe(
      'caller Client::"anonymous"\ntools that the policies name:\n  delete: hidden\n  find: hidden\n  refund: shown\n  write: hidden\n',
    )
  })
})

it('reads claims from a file, or from a token', () => {
  const folder = mkdtempSync(join(tmpdir(), 'explain-'))
  const token = `e30.${Buffer.from(JSON.stringify(ANN.claims)).toString('base64url')}.sig`
  writeFileSync(join(folder, 'claims.json'), JSON.stringify(ANN.claims))
  writeFileSync(join(folder, 'token'), `${token}\n`)
  writeFileSync(join(folder, 'bad'), 'x')
  expect(subjectOf({ claims: 'claims.json' }, folder)).toEqual(ANN)
  expect(subjectOf({ tokenFile: 'token' }, folder)).toEqual(ANN)
  expect(subjectOf({}, folder)).toBeUndefined()
  for (const options of [{ claims: 'bad' }, { tokenFile: 'bad' }, { claims: 'none' }, { claims: 'claims.json', tokenFile: 'token' }])
    expect(() => subjectOf(options, folder)).toThrow(expect.objectContaining({ code: 'usage' }))
  rmSync(folder, { recursive: true })
})
