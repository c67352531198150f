import { readAuthzDocument } from '@thv/authz/load/authz-document'
import { checkPolicies } from '@thv/authz/policy-syntax'
import { configHash } from '@thv/kernel/config-hash'
import type { CanonicalAuthzConfig, CanonicalPolicySource } from '@thv/resources/shared/authz-config'
import { authzConfig as authzConfigs } from '@thv/resources/testing/workload-arbitraries'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type AuthzArgs, resolveAuthz } from './authz.ts'
import { blockersOf, contributionOf, runnerReads, type SnapshotObjects, snapshot } from './testing/snapshot.ts'

const PERMIT = 'permit(principal, action, resource);'

const resolve = (authzConfig: CanonicalAuthzConfig | undefined, { login, ...objects }: SnapshotObjects & Pick<AuthzArgs, 'login'> = {}) =>
  resolveAuthz({ kind: 'MCPServer', name: 'demo', authzConfig, login, checkPolicies, lookup: snapshot(objects) })

/** As the runner reads it from the mounted file. */
function documentOf(resolved: ReturnType<typeof resolve>) {
  const read = readAuthzDocument(contributionOf(resolved).authzDocument ?? '')
  if (!read.ok) throw new Error(read.problems.join('; '))
  return read.config
}

const inline = (
  policies: string[],
  more: Partial<{ entitiesJson: string; primaryUpstreamProvider: string }> = {},
): CanonicalAuthzConfig => ({
  type: 'inline',
  inline: { policies, entitiesJson: '[]', ...more },
})

const FROM_MAP: CanonicalAuthzConfig = { type: 'configMap', configMap: { name: 'policies', key: 'authz.json' } }
const fromMap = (text: string, more: Partial<CanonicalAuthzConfig> = {}) =>
  resolve({ ...FROM_MAP, ...more } as CanonicalAuthzConfig, { configMaps: { policies: { 'authz.json': text } } })

describe('resolveAuthz', () => {
  it('adds nothing, and never asks the engine, when nothing is asked for', () => {
    const checker = () => {
      throw new Error('must not be loaded')
    }
    const none = resolveAuthz({ kind: 'MCPServer', name: 'demo', authzConfig: undefined, checkPolicies: checker, lookup: snapshot() })
    expect(contributionOf(none)).toEqual({})
  })

  it('writes inline policies into a file that the proxy mounts', () => {
    const config = {
      ...inline([PERMIT], { entitiesJson: '[{"uid":{"type":"A","id":"b"},"attrs":{},"parents":[]}]' }),
      groupClaimName: 'teams',
    }
    expect(contributionOf(resolve(config))).toEqual({
      runConfig: { authz_config_path: '/etc/toolhive/authz/authz.json' },
      authzDocument: expect.any(String),
      volumes: [{ name: 'authz-config', configMap: { name: 'demo-authz' } }],
      volumeMounts: [{ name: 'authz-config', mountPath: '/etc/toolhive/authz', readOnly: true }],
      conditions: [],
      status: { authzConfigHash: expect.stringMatching(/^[0-9a-f]{16}$/) },
    })
    expect(documentOf(resolve(config))).toEqual({
      version: '1.0',
      type: 'cedarv1',
      cedar: {
        policies: [PERMIT],
        entities_json: '[{"uid":{"type":"A","id":"b"},"attrs":{},"parents":[]}]',
        group_claim_name: 'teams',
      },
    })
  })

  it('tells the hash that the runner has of the same document', () => {
    const resolved = resolve(inline([PERMIT]))
    expect(contributionOf(resolved).status).toEqual({ authzConfigHash: configHash(documentOf(resolved)) })
  })

  it('refuses more than a ConfigMap holds', () => {
    const attrs = { text: 'x'.repeat(1_000_000) }
    const entitiesJson = JSON.stringify([{ uid: { type: 'A', id: 'b' }, attrs, parents: [] }])
    expect(blockersOf(resolve(inline([PERMIT], { entitiesJson })))).toMatchObject([
      { reason: 'AuthzConfigMapInvalid', message: expect.stringContaining('more than 1000000 bytes') },
    ])
  })

  it('refuses to read the policies from the ConfigMap that it writes', () => {
    const own: CanonicalAuthzConfig = { type: 'configMap', configMap: { name: 'demo-authz', key: 'authz.json' } }
    const text = JSON.stringify({ version: '1.0', type: 'cedarv1', cedar: { policies: [PERMIT] } })
    expect(blockersOf(resolve(own, { configMaps: { 'demo-authz': { 'authz.json': text } } }))).toMatchObject([
      { reason: 'AuthzConfigMapInvalid', message: expect.stringContaining('ConfigMap demo-authz, which the operator writes') },
    ])
  })

  it('names policies and entities that Cedar does not take', () => {
    expect(blockersOf(resolve(inline([PERMIT, 'permit(principal, action)'], { entitiesJson: '{}' })))).toEqual([
      {
        condition: 'ConfigurationValid',
        reason: 'AuthzPolicySyntaxInvalid',
        message: expect.stringMatching(
          /^spec\.authzConfig\.inline\.policies\[1\]: .*; spec\.authzConfig\.inline\.entitiesJson: is not a JSON array$/,
        ),
      },
    ])
  })

  describe('a provider of the embedded server', () => {
    const login = (primaryUpstreamProvider?: string) => ({
      upstreamProviders: [{ name: 'corp' }, { name: 'github' }],
      ...(primaryUpstreamProvider !== undefined && { primaryUpstreamProvider }),
    })

    it.each([
      ['the policies name', inline([PERMIT], { primaryUpstreamProvider: 'github' }), login()],
      ['the server names', inline([PERMIT]), login('github')],
      ['both name', inline([PERMIT], { primaryUpstreamProvider: 'github' }), login('github')],
    ])('whose claims the policies see: %s it', (_, authzConfig, server) => {
      // Without the part of the server, which the runner wants beside it.
      const { contribution } = resolve(authzConfig, { login: server })
      const { authzDocument = '', runConfig, conditions } = contribution as NonNullable<ReturnType<typeof contributionOf>>
      expect(JSON.parse(authzDocument).cedar.primary_upstream_provider).toBe('github')
      // A change of it replaces the pods, unlike one of the policies.
      expect(runConfig).toEqual({ authz_config_path: '/etc/toolhive/authz/authz.json', authz_primary_upstream_provider: 'github' })
      expect(conditions).toEqual([])
    })

    it.each([
      ['that it does not have', inline([PERMIT], { primaryUpstreamProvider: 'other' }), login(), 'has no such provider'],
      ['other than its own', inline([PERMIT], { primaryUpstreamProvider: 'github' }), login('corp'), 'keep one'],
    ])('%s blocks', (_, authzConfig, server, message) => {
      expect(blockersOf(resolve(authzConfig, { login: server }))).toMatchObject([
        { condition: 'ConfigurationValid', reason: 'InvalidSpec', message: expect.stringContaining(message) },
      ])
    })

    it('is no problem of its own while the server has one', () => {
      const { conditions } = contributionOf(resolve(inline([PERMIT], { primaryUpstreamProvider: 'x' }), { login: 'unresolved' }))
      expect(conditions).toEqual([])
    })
  })

  it('warns of a provider that has no effect here, and leaves it out', () => {
    const { authzDocument, conditions } = contributionOf(resolve(inline([PERMIT], { primaryUpstreamProvider: 'github' })))
    expect(authzDocument).not.toContain('github')
    expect(conditions).toMatchObject([
      {
        type: 'AuthzPrimaryUpstreamProviderIgnored',
        status: 'True',
        reason: 'PrimaryUpstreamProviderIgnored',
        message: expect.stringContaining('spec.authzConfig.inline.primaryUpstreamProvider'),
      },
    ])
  })

  describe('candidates', () => {
    const NEXT = 'permit(principal in Team::"x", action, resource);'
    const source = (roleClaimName?: string): CanonicalPolicySource => ({
      type: 'inline',
      inline: { policies: [NEXT], entitiesJson: '[]' },
      ...(roleClaimName !== undefined && { roleClaimName }),
    })
    const text = (candidate?: object) => JSON.stringify({ version: '1.0', type: 'cedarv1', cedar: { policies: [PERMIT] }, candidate })

    it('are in the same document, and mean the same claims unless they name others', () => {
      const enforced = { ...inline([PERMIT]), groupClaimName: 'teams', roleClaimName: 'duties', groupEntityType: 'Team' }
      const resolved = resolve({ ...enforced, candidate: source('roles') })
      expect(documentOf(resolved).candidate).toEqual({
        policies: [NEXT],
        entities_json: '[]',
        group_claim_name: 'teams',
        role_claim_name: 'roles',
        group_entity_type: 'Team',
      })
      const without = contributionOf(resolve(enforced)).status
      expect(contributionOf(resolved).status).not.toEqual(without)
    })

    it('may be in the document of the enforced policies, or in a document of their own', () => {
      expect(documentOf(fromMap(text({ policies: [NEXT] }))).candidate?.policies).toEqual([NEXT])
      const own = { ...inline([NEXT]), candidate: FROM_MAP }
      expect(documentOf(resolve(own, { configMaps: { policies: { 'authz.json': text() } } })).candidate?.policies).toEqual([PERMIT])
    })

    it('are refused twice, and in themselves', () => {
      const both = fromMap(text({ policies: [NEXT] }), { candidate: source() })
      expect(blockersOf(both)).toMatchObject([{ reason: 'AuthzConfigMapInvalid', message: expect.stringContaining('keep one') }])
      const nested = resolve(
        { ...inline([PERMIT]), candidate: FROM_MAP },
        { configMaps: { policies: { 'authz.json': text({ policies: [NEXT] }) } } },
      )
      expect(blockersOf(nested)).toMatchObject([{ message: expect.stringContaining('cannot have a candidate itself') }])
    })

    it('block with a mistake as enforced ones do, which the message names', () => {
      const spec = resolve({ ...inline([PERMIT]), candidate: { type: 'inline', inline: { policies: ['permit('], entitiesJson: '[]' } } })
      const document = fromMap(text({ policies: ['permit('] }))
      for (const [resolved, where] of [
        [spec, 'spec.authzConfig.candidate.inline.policies[0]: '],
        [document, 'key authz.json of ConfigMap policies, candidate.policies[0]: '],
      ] as const)
        expect(blockersOf(resolved)).toMatchObject([{ reason: 'AuthzPolicySyntaxInvalid', message: expect.stringContaining(where) }])
      const missing = resolve({ ...inline([PERMIT]), candidate: FROM_MAP })
      expect(blockersOf(missing)).toMatchObject([
        { reason: 'AuthzConfigMapNotFound', message: expect.stringMatching(/^spec\.authzConfig\.candidate\.configMap names key/) },
      ])
    })
  })

  it.each([
    ['its name at the server', 'Tool::"search"', []],
    ['a name that nothing renames', 'Tool::"other"', []],
    ['the name that clients see', 'Tool::"find"', ['Tool::"find" (the server calls it "search")']],
    [
      'the name that clients see, in a condition',
      'Tool::"other"); forbid(principal, action, resource) when { resource == Tool :: "fi\\nd"',
      ['Tool::"fi\\nd"'],
    ],
    ['a name that is another tool at the server', 'Tool::"list"', []],
  ])('warns of a policy that names a tool by %s, or does not', (_, tool, warned) => {
    const toolOverrides = { search: { name: 'find' }, get: { name: 'list' }, list: { name: 'get' }, odd: { name: 'fi\nd' } }
    const policies = tool.includes(');')
      ? tool.split('; ').map((part, at) => (at === 0 ? `permit(principal, action, resource == ${part};` : `${part} };`))
      : [`permit(principal, action, resource == ${tool});`]
    const { conditions = [] } = contributionOf(
      resolveAuthz({ kind: 'MCPServer', name: 'demo', authzConfig: inline(policies), toolOverrides, checkPolicies, lookup: snapshot() }),
    )
    expect(conditions).toHaveLength(warned.length)
    for (const message of warned)
      expect(conditions).toMatchObject([
        { type: 'AuthzVisibleToolNames', status: 'True', reason: 'PolicyNamesVisibleTool', message: expect.stringContaining(message) },
      ])
  })

  describe('from a ConfigMap', () => {
    const CEDAR = { policies: [PERMIT], entities_json: '[]', group_claim_name: 'g', role_claim_name: 'r', group_entity_type: 'Team' }
    const yaml = `version: 1.0\ntype: cedarv1\ncedar:\n  policies:\n    - |\n      permit(principal, action, resource);\n  group_claim_name: g\n  multi_valued_claims: [scope]\n`

    it('reads JSON, also with tabs and a byte order mark', () => {
      const document = { version: '1.0', type: 'cedarv1', cedar: CEDAR }
      for (const text of [JSON.stringify(document), `\ufeff${JSON.stringify(document, undefined, '\t')}`])
        expect(documentOf(fromMap(text))).toEqual(document)
    })

    it('reads YAML, where a version is a number', () => {
      expect(documentOf(fromMap(yaml))).toEqual({
        version: '1.0',
        type: 'cedarv1',
        cedar: { policies: [`${PERMIT}\n`], entities_json: '[]', group_claim_name: 'g', multi_valued_claims: ['scope'] },
      })
    })

    it('lets names of claims in the spec win, those that are set', () => {
      const text = JSON.stringify({ version: '1.0', type: 'cedarv1', cedar: CEDAR })
      const { cedar } = documentOf(fromMap(text, { groupClaimName: 'mine', roleClaimName: '', groupEntityType: 'Group' }))
      expect(cedar).toEqual({ ...CEDAR, group_claim_name: 'mine', group_entity_type: 'Group' })
    })

    it('warns of a provider there too', () => {
      const { conditions } = contributionOf(
        fromMap(JSON.stringify({ type: 'cedarv1', cedar: { ...CEDAR, primary_upstream_provider: 'p' } })),
      )
      expect(conditions).toMatchObject([
        { message: expect.stringContaining('key authz.json of ConfigMap policies, cedar.primary_upstream_provider') },
      ])
    })

    it.each([
      ['nothing', ' \n', 'the document is empty'],
      ['broken JSON', '{"type": hunter2}', 'line 1, column 10: the document is not JSON'],
      ['broken YAML', 'type: cedarv1\n  x: [hunter2', 'line 1, column 7: the document is neither JSON nor YAML'],
      ['a key twice', 'type: cedarv1\ntype: hunter2', 'neither JSON nor YAML'],
      ['a text', 'hunter2', 'the document expects an object'],
      ['no type', '{"cedar":{"policies":["x"]}}', 'type is required'],
      ['another engine', '{"type":"httpv1"}', 'type must be cedarv1'],
      ['another version', '{"version":"2.0","type":"cedarv1","cedar":{"policies":["x"]}}', 'version must be "1.0"'],
      ['no policies', '{"type":"cedarv1"}', 'cedar is missing'],
      ['an empty list', '{"type":"cedarv1","cedar":{"policies":[]}}', 'cedar.policies is empty'],
      ['an empty policy', '{"type":"cedarv1","cedar":{"policies":[""]}}', 'cedar.policies[0]'],
      [
        'a misspelt member',
        `{"type":"cedarv1","cedar":{"policies":["x"],"entites_json":"hunter2"}}`,
        'cedar.entites_json is not a known field',
      ],
      ['another spelling', `{"type":"cedarv1","cedar":{"policies":["x"],"entitiesJson":"hunter2"}}`, 'must be written as entities_json'],
      ['entities that are no text', `{"type":"cedarv1","cedar":{"policies":["x"],"entities_json":[]}}`, 'cedar.entities_json expects'],
      ['a type with a namespace', `{"type":"cedarv1","cedar":{"policies":["x"],"group_entity_type":"A::B"}}`, 'without a namespace'],
      [
        'too many aliases',
        `a: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: [*c, *c]`,
        'too many aliases',
      ],
      ['a large YAML document', `type: cedarv1 #${'x'.repeat(200_000)}`, 'more than 128 KiB, which only JSON may have'],
      ['an alias of nothing', 'type: *nothing', 'one that leads nowhere'],
    ])('refuses %s, without quoting it', (_, text, message) => {
      const [blocker, ...others] = blockersOf(fromMap(text))
      expect(blocker).toEqual({
        condition: 'ConfigurationValid',
        reason: 'AuthzConfigMapInvalid',
        message: expect.stringMatching(/^key authz\.json of ConfigMap policies, /),
      })
      expect(blocker?.message).toContain(message)
      expect(blocker?.message).not.toContain('hunter2')
      expect(others).toEqual([])
    })

    it('refuses one that is not there, or has no such key', () => {
      for (const configMaps of [{}, { policies: { other: yaml } }])
        expect(blockersOf(resolve(FROM_MAP, { configMaps }))).toMatchObject([
          {
            reason: 'AuthzConfigMapNotFound',
            message: expect.stringContaining('key authz.json of ConfigMap policies, which does not exist'),
          },
        ])
    })

    it('checks the policies there too', () => {
      expect(blockersOf(fromMap('{"type":"cedarv1","cedar":{"policies":["nonsense"]}}'))).toMatchObject([
        {
          reason: 'AuthzPolicySyntaxInvalid',
          message: expect.stringContaining('key authz.json of ConfigMap policies, cedar.policies[0]: '),
        },
      ])
    })
  })

  it('whatever is asked for: it is blocked with a reason, or the runner gets policies that it reads', () => {
    fc.assert(
      fc.property(authzConfigs, fc.boolean(), (config, isWellWritten) => {
        if (config.type === 'inline' && isWellWritten) config.inline.policies = [PERMIT]
        const resolved = resolve(config)
        if (!resolved.ok) expect(resolved.blockers.length).toBeGreaterThan(0)
        else {
          expect(runnerReads(resolved.contribution).authz_config_path).toBe('/etc/toolhive/authz/authz.json')
          expect(documentOf(resolved).cedar.policies).toEqual([PERMIT])
        }
      }),
    )
  })
})
