import type { CanonicalInlineOidc } from '@thv/resources/shared/inline-oidc'
import type { CanonicalKubernetesOidc, CanonicalOidcConfig } from '@thv/resources/shared/oidc-config'
import { oidcConfig as oidcConfigs } from '@thv/resources/testing/workload-arbitraries'
import { createCertificate } from '@thv/testkit/cluster/identity/certificate'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { resolveOidc } from './oidc.ts'
import { blockersOf, contributionOf, runnerReads, type SnapshotObjects, snapshot } from './testing/snapshot.ts'

const CA = createCertificate({ commonName: 'corp', ca: true }).certPem
const OTHER_CA = createCertificate({ commonName: 'other', ca: true }).certPem

const resolve = (oidcConfig: CanonicalOidcConfig | undefined, objects: SnapshotObjects = {}) =>
  resolveOidc({
    oidcConfig,
    name: 'x',
    namespace: 'team',
    serviceHost: 'mcp-x-proxy.team.svc.cluster.local',
    proxyPort: 8081,
    lookup: snapshot(objects),
  })

const inline = (more: Partial<CanonicalInlineOidc> = {}): CanonicalOidcConfig => ({
  type: 'inline',
  inline: {
    issuer: 'https://idp.example.com',
    jwksAllowPrivateIP: false,
    protectedResourceAllowPrivateIP: false,
    insecureAllowHTTP: false,
    scopes: ['openid'],
    ...more,
  },
})

const kubernetes = (more: Partial<CanonicalKubernetesOidc> = {}): CanonicalOidcConfig => ({
  type: 'kubernetes',
  kubernetes: { issuer: 'https://kubernetes.default.svc', audience: 'toolhive', useClusterAuth: true, ...more },
})

const configMap = (
  more: { key?: string; caBundleRef?: { configMapRef: { name: string; key: string; optional: boolean } } } = {},
): CanonicalOidcConfig => ({
  type: 'configMap',
  configMap: { name: 'oidc-config', key: 'oidc.json', ...more },
})

const bundleRef = (name: string, optional = false) => ({ configMapRef: { name, key: 'ca.crt', optional } })

describe('resolveOidc', () => {
  it('adds nothing when nothing is asked for', () => {
    expect(contributionOf(resolve(undefined))).toEqual({})
  })

  it('resolves inline settings; without a resource URL the runner goes by the address that requests come to', () => {
    const { runConfig, env, secrets, volumes, conditions, status } = contributionOf(
      resolve(
        inline({
          audience: 'my-app',
          jwksUrl: 'https://idp.example.com/keys',
          introspectionUrl: 'https://idp.example.com/introspect',
          clientId: 'proxy',
          clientSecretRef: { name: 'oidc', key: 'secret' },
          jwksAuthTokenPath: '/var/token',
          thvCABundlePath: '/etc/ca.pem',
          jwksAllowPrivateIP: true,
          scopes: ['openid', 'mcp'],
        }),
        { secrets: { oidc: ['secret'] } },
      ),
    )
    expect(runConfig).toEqual({
      oidc_config: {
        issuer: 'https://idp.example.com',
        audience: 'my-app',
        jwks_url: 'https://idp.example.com/keys',
        introspection_url: 'https://idp.example.com/introspect',
        client_id: 'proxy',
        ca_cert_path: '/etc/ca.pem',
        auth_token_file: '/var/token',
        allow_private_ip: false,
        jwks_allow_private_ip: true,
        insecure_allow_http: false,
        scopes: ['openid', 'mcp'],
        this_cluster: false,
        forward_token: false,
      },
      thv_ca_bundle: '/etc/ca.pem',
      jwks_auth_token_file: '/var/token',
    })
    expect(env).toEqual([{ name: 'TOOLHIVE_OIDC_CLIENT_SECRET', valueFrom: { secretKeyRef: { name: 'oidc', key: 'secret' } } }])
    expect(secrets).toEqual(['oidc'])
    expect(volumes).toEqual([])
    expect(conditions).toEqual([])
    expect(status?.['oidcConfigHash']).toMatch(/^[0-9a-f]{16}$/)
  })

  it('lets the server have the tokens of clients only where the spec says so', () => {
    const forwards = (config: CanonicalOidcConfig) => contributionOf(resolve(config)).runConfig?.oidc_config?.forward_token
    expect([forwards(inline()), forwards({ ...inline(), forwardToken: true })]).toEqual([false, true])
  })

  it('tells the address that the spec gives', () => {
    const { runConfig } = contributionOf(resolve({ ...inline(), resourceUrl: 'https://mcp.example.com/x' }))
    expect(runConfig?.oidc_config?.resource_url).toBe('https://mcp.example.com/x')
  })

  describe('of type kubernetes', () => {
    it('means this cluster with the default issuer, and compares any other one', () => {
      const oidcOf = (settings: Parameters<typeof kubernetes>[0]) => contributionOf(resolve(kubernetes(settings))).runConfig?.oidc_config
      expect(oidcOf({})).toMatchObject({ this_cluster: true })
      expect(oidcOf({})).not.toHaveProperty('issuer')
      const issuer = 'https://oidc.eks.example.com/id/1'
      expect(oidcOf({ issuer })).toMatchObject({ this_cluster: false, issuer })
      const jwksUrl = 'https://kubernetes.default.svc/openid/v1/jwks'
      expect(oidcOf({ jwksUrl })).toMatchObject({ this_cluster: false, issuer: 'https://kubernetes.default.svc', jwks_url: jwksUrl })
    })

    it('brings the CA of the cluster and a token in a volume of its own: not every proxy has that of its account', () => {
      const { runConfig, volumes, volumeMounts } = contributionOf(resolve(kubernetes()))
      expect(runConfig?.oidc_config).toEqual({
        this_cluster: true,
        forward_token: false,
        audience: 'toolhive',
        ca_cert_path: '/var/run/secrets/toolhive.stacklok.dev/oidc/ca.crt',
        auth_token_file: '/var/run/secrets/toolhive.stacklok.dev/oidc/token',
        allow_private_ip: true,
        jwks_allow_private_ip: true,
        insecure_allow_http: false,
        scopes: ['openid'],
      })
      expect(volumes).toEqual([
        {
          name: 'oidc-cluster-auth',
          projected: {
            sources: [
              { serviceAccountToken: { path: 'token', expirationSeconds: 3600 } },
              { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
            ],
          },
        },
      ])
      expect(volumeMounts).toEqual([
        { name: 'oidc-cluster-auth', mountPath: '/var/run/secrets/toolhive.stacklok.dev/oidc', readOnly: true },
      ])
    })

    it.each([
      ['the issuer is somebody else', { issuer: 'https://oidc.eks.example.com/id/1' }, false],
      ['the issuer only looks like the API server', { issuer: 'https://kubernetes.default.svc.evil.example.com' }, false],
      ['opaque tokens are looked up elsewhere', { introspectionUrl: 'https://idp.example.com/i' }, false],
      [
        'the keys come from the API server',
        { issuer: 'https://oidc.eks.example.com/id/1', jwksUrl: 'https://kubernetes.default.svc.cluster.local/openid/v1/jwks' },
        true,
      ],
    ])('gives the token of the account to the API server only: %s', (_, more, withToken) => {
      const { runConfig, volumes } = contributionOf(resolve(kubernetes(more)))
      expect(runConfig?.oidc_config?.auth_token_file !== undefined).toBe(withToken)
      expect(JSON.stringify(volumes).includes('serviceAccountToken')).toBe(withToken)
      expect(runConfig?.oidc_config?.ca_cert_path).toBeDefined()
    })

    it('brings nothing without useClusterAuth', () => {
      const { runConfig, volumes } = contributionOf(resolve(kubernetes({ useClusterAuth: false })))
      expect(runConfig?.oidc_config).toMatchObject({ allow_private_ip: false })
      expect(runConfig).not.toHaveProperty('thv_ca_bundle')
      expect(volumes).toEqual([])
    })

    it.each([
      [{ serviceAccount: 'ci' }, 'system:serviceaccount:team:ci'],
      [{ serviceAccount: 'ci', namespace: 'build' }, 'system:serviceaccount:build:ci'],
      [{ namespace: 'build' }, 'system:serviceaccount:build:*'],
      [{}, undefined],
      [{ serviceAccount: '', namespace: '' }, undefined],
    ])('asks for the subject of %j', (more, subject) => {
      expect(contributionOf(resolve(kubernetes(more))).runConfig?.oidc_config?.required_subject).toBe(subject)
    })

    it.each([{ serviceAccount: '*' }, { serviceAccount: 'a:b' }, { namespace: 'a:*' }, { serviceAccount: 'ci', namespace: 'A' }])(
      'rejects %j, which would widen the subject',
      (more) => {
        expect(blockersOf(resolve(kubernetes(more)))).toEqual([
          {
            condition: 'ConfigurationValid',
            reason: 'InvalidSpec',
            message: expect.stringContaining('must be names of Kubernetes objects'),
          },
        ])
      },
    )
  })

  describe('of type configMap', () => {
    const oidcOf = (data: Record<string, string>, config = configMap()) =>
      contributionOf(resolve(config, { configMaps: { 'oidc-config': data } })).runConfig?.oidc_config

    it('reads settings from keys of the ConfigMap', () => {
      expect(
        oidcOf({
          issuer: 'https://idp.example.com\n',
          audience: 'a',
          jwksUrl: 'https://idp.example.com/keys',
          clientId: 'c',
          jwksAuthTokenPath: '/t',
          thvCABundlePath: '/ca',
          jwksAllowPrivateIP: 'true',
          insecureAllowHTTP: 'FALSE',
          scopes: 'openid, mcp',
          'unrelated.txt': 'x',
        }),
      ).toEqual({
        issuer: 'https://idp.example.com',
        audience: 'a',
        jwks_url: 'https://idp.example.com/keys',
        client_id: 'c',
        ca_cert_path: '/ca',
        auth_token_file: '/t',
        allow_private_ip: false,
        jwks_allow_private_ip: true,
        insecure_allow_http: false,
        scopes: ['openid', 'mcp'],
        this_cluster: false,
        forward_token: false,
      })
    })

    it('reads settings from a JSON document at oidc.json, with keys of the ConfigMap winning over its members [002-284]', () => {
      const document = { issuer: 'https://a.example.com', audience: 'a', jwksAllowPrivateIP: true, scopes: ['one', 'two'], clientId: null }
      const expected = { issuer: 'https://a.example.com', audience: 'a', jwks_allow_private_ip: true, scopes: ['one', 'two'] }
      expect(oidcOf({ 'oidc.json': JSON.stringify(document) })).toMatchObject(expected)
      expect(oidcOf({ my: JSON.stringify(document) }, configMap({ key: 'my' }))).toMatchObject(expected)
      expect(oidcOf({ 'oidc.json': JSON.stringify(document), audience: 'b', issuer: '' })).toMatchObject({ ...expected, audience: 'b' })
    })

    it.each<[string, Record<string, string>, string]>([
      ['no issuer', { audience: 'a' }, 'ConfigMap oidc-config says no issuer'],
      ['an empty ConfigMap', {}, 'says no issuer'],
      ['what is not JSON', { 'oidc.json': '{"issuer": hunter2}' }, 'key oidc.json is not JSON (line 1, column 12)'],
      ['a list', { 'oidc.json': '[]' }, 'key oidc.json is not a JSON object'],
      ['an unknown member', { 'oidc.json': '{"issuer":"https://i.example.com","audiance":"a"}' }, '"audiance" is not a setting'],
      ['a member of another type', { 'oidc.json': '{"issuer":"https://i.example.com","audience":["hunter2"]}' }, 'audience must be a text'],
      [
        'a key in another spelling',
        { issuer: 'https://i.example.com', jwks_url: 'https://i.example.com/k' },
        'key jwks_url must be written as jwksUrl',
      ],
      [
        'a flag that is none',
        { issuer: 'https://i.example.com', insecureAllowHTTP: 'hunter2' },
        'key insecureAllowHTTP must be true or false',
      ],
      ['scopes that are none', { 'oidc.json': '{"issuer":"https://i.example.com","scopes":["hunter2 x"]}' }, 'scopes must be a list'],
    ])('refuses %s, without saying what is in it', (_, data, message) => {
      const [blocker, ...others] = blockersOf(resolve(configMap(), { configMaps: { 'oidc-config': data } }))
      expect(blocker).toEqual({
        condition: 'ConfigurationValid',
        reason: 'OIDCConfigMapInvalid',
        message: expect.stringContaining(message),
      })
      expect(blocker?.message).not.toContain('hunter2')
      expect(others).toEqual([])
    })

    it('refuses a key that was asked for and is not there, and a ConfigMap that is not there', () => {
      const objects = { configMaps: { 'oidc-config': { issuer: 'https://i.example.com' } } }
      expect(blockersOf(resolve(configMap({ key: 'my' }), objects))).toMatchObject([
        { reason: 'OIDCConfigMapInvalid', message: expect.stringContaining('has no key my') },
      ])
      expect(blockersOf(resolve(configMap()))).toMatchObject([{ reason: 'OIDCConfigMapNotFound' }])
    })

    it('prefers a path in the ConfigMap to caBundleRef', () => {
      const objects = { configMaps: { 'oidc-config': { issuer: 'https://i.example.com', thvCABundlePath: '/ca' } } }
      const { runConfig, volumes } = contributionOf(resolve(configMap({ caBundleRef: bundleRef('missing') }), objects))
      expect([runConfig?.thv_ca_bundle, volumes]).toEqual(['/ca', []])
    })
  })

  describe('with a CA bundle', () => {
    const objects = (pem: string) => ({ configMaps: { 'corp.ca': { 'ca.crt': pem } } })

    it('mounts it, says so, and has pods replaced when the certificates change', () => {
      const first = contributionOf(resolve(inline({ caBundleRef: bundleRef('corp.ca') }), objects(CA)))
      expect(first.runConfig).toMatchObject({
        oidc_config: { ca_cert_path: '/config/certs/corp.ca/ca.crt' },
        thv_ca_bundle: '/config/certs/corp.ca/ca.crt',
      })
      expect(first.volumes).toEqual([
        { name: 'oidc-ca-bundle-corp-ca', configMap: { name: 'corp.ca', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
      ])
      expect(first.volumeMounts).toEqual([{ name: 'oidc-ca-bundle-corp-ca', mountPath: '/config/certs/corp.ca', readOnly: true }])
      expect(first.conditions).toMatchObject([{ type: 'CABundleRefValidated', status: 'True', reason: 'CABundleRefValid' }])

      const commented = contributionOf(resolve(inline({ caBundleRef: bundleRef('corp.ca') }), objects(`# new\n${CA}`)))
      const changed = contributionOf(resolve(inline({ caBundleRef: bundleRef('corp.ca') }), objects(OTHER_CA)))
      expect(commented.env).toEqual(first.env)
      expect(changed.env).not.toEqual(first.env)
      expect(changed.runConfig).toEqual(first.runConfig)
      expect(changed.status).not.toEqual(first.status)
    })

    it('is blocked by one that is missing or broken, and tells everything else that is wrong too', () => {
      const config = inline({
        caBundleRef: bundleRef('corp.ca'),
        clientSecretRef: { name: 'oidc', key: 'secret' },
        introspectionUrl: 'ftp://x',
      })
      expect(blockersOf(resolve(config))).toMatchObject([
        { condition: 'ConfigurationValid', reason: 'IntrospectionURLInvalid' },
        { condition: 'ConfigurationValid', reason: 'SecretNotFound' },
        { condition: 'CABundleRefValidated', reason: 'CABundleRefNotFound' },
      ])
      expect(blockersOf(resolve(inline({ caBundleRef: bundleRef('corp.ca') }), objects('nothing')))).toMatchObject([
        { condition: 'CABundleRefValidated', reason: 'CABundleRefInvalid' },
      ])
    })

    it('refuses a name that the volume cannot carry', () => {
      const withName = (name: string) => resolve(inline({ caBundleRef: bundleRef(name) }), { configMaps: { [name]: { 'ca.crt': CA } } })
      contributionOf(withName('n'.repeat(48)))
      expect(blockersOf(withName('n'.repeat(49)))).toMatchObject([
        { reason: 'CABundleRefInvalid', message: expect.stringContaining('longer than 48 characters') },
      ])
    })

    it('does without one that may be missing', () => {
      const { runConfig, conditions, volumes } = contributionOf(resolve(inline({ caBundleRef: bundleRef('corp.ca', true) })))
      expect(runConfig).not.toHaveProperty('thv_ca_bundle')
      expect(volumes).toEqual([])
      expect(conditions).toMatchObject([{ status: 'True', message: expect.stringContaining('which is allowed') }])
    })
  })

  describe('URLs', () => {
    it.each<[string, Partial<CanonicalInlineOidc>, string[]]>([
      ['http issuer', { issuer: 'http://idp.example.com' }, ['OIDCIssuerInsecure']],
      ['http keys', { jwksUrl: 'http://idp.example.com/k' }, ['JWKSURLInvalid']],
      ['http introspection', { introspectionUrl: 'http://idp.example.com/i' }, ['IntrospectionURLInvalid']],
      ['http where it is allowed', { issuer: 'http://idp:8080', jwksUrl: 'http://idp:8080/k', insecureAllowHTTP: true }, []],
      ['no URL', { issuer: 'idp' }, ['OIDCIssuerInvalid']],
      ['a password in it', { issuer: 'https://me:hunter2@idp.example.com' }, ['OIDCIssuerInvalid']],
      ['a query of an issuer', { issuer: 'https://idp.example.com?x=1' }, ['OIDCIssuerInvalid']],
      ['a query of the keys', { jwksUrl: 'https://idp.example.com/k?p=1' }, []],
      ['a fragment', { jwksUrl: 'https://idp.example.com/k#' }, ['JWKSURLInvalid']],
      ['white space', { issuer: 'https://idp.example.com\n' }, ['OIDCIssuerInvalid']],
      ['a slash at the end', { issuer: 'https://idp.example.com/' }, []],
      [
        'all at once',
        { issuer: 'x', jwksUrl: 'y', introspectionUrl: 'z' },
        ['OIDCIssuerInvalid', 'JWKSURLInvalid', 'IntrospectionURLInvalid'],
      ],
    ])('%s', (_, more, reasons) => {
      const resolved = resolve(inline(more))
      expect(resolved.ok ? [] : resolved.blockers.map(({ reason }) => reason)).toEqual(reasons)
      expect(JSON.stringify(resolved)).not.toContain('hunter2')
      if (resolved.ok) runnerReads(resolved.contribution)
    })

    it('that we tell clients must be one too', () => {
      expect(blockersOf(resolve({ ...inline(), resourceUrl: 'mcp.example.com' }))).toMatchObject([{ reason: 'ResourceURLInvalid' }])
    })

    it('are named where they are written', () => {
      const objects = { configMaps: { 'oidc-config': { issuer: 'http://i.example.com', 'oidc.json': '{"jwksUrl":"x"}' } } }
      expect(blockersOf(resolve(configMap(), objects)).map(({ message }) => message)).toEqual([
        expect.stringMatching(/^key issuer of ConfigMap oidc-config must begin with https/),
        expect.stringMatching(/^jwksUrl at key oidc.json of ConfigMap oidc-config cannot be used: not a URL/),
      ])
    })
  })

  describe('the client secret', () => {
    it('must be in the Secret', () => {
      const config = inline({ clientSecretRef: { name: 'oidc', key: 'secret' } })
      expect(blockersOf(resolve(config, { secrets: { oidc: ['other'] } }))).toEqual([
        {
          condition: 'ConfigurationValid',
          reason: 'SecretNotFound',
          message: 'spec.oidcConfig.inline.clientSecretRef names key secret, which Secret oidc does not have: add it',
        },
      ])
    })

    it('in clear goes into the RunConfig alone, with a warning that says where to put it', () => {
      const { runConfig, ...rest } = contributionOf(resolve(inline({ clientSecret: 'hunter2' })))
      expect(runConfig?.oidc_config?.client_secret).toBe('hunter2')
      expect(JSON.stringify(rest)).not.toContain('hunter2')
      expect(rest.conditions).toEqual([
        {
          type: 'PlaintextSecret',
          status: 'True',
          reason: 'ClientSecretInPlainText',
          message: expect.stringMatching(/^spec.oidcConfig.inline.clientSecret .*ConfigMap x-runconfig: put it into a Secret/),
        },
      ])
    })

    it('is never hashed: a hash in the status could be guessed at', () => {
      const hashWith = (clientSecret: string) => contributionOf(resolve(inline({ clientSecret }))).status
      expect(hashWith('a')).toEqual(hashWith('b'))
    })

    it('in a key of a ConfigMap stays there', () => {
      const objects = { configMaps: { 'oidc-config': { issuer: 'https://i.example.com', clientSecret: 'hunter2' } } }
      const contribution = contributionOf(resolve(configMap(), objects))
      expect(JSON.stringify(contribution)).not.toContain('hunter2')
      expect(contribution.env).toEqual([
        { name: 'TOOLHIVE_OIDC_CLIENT_SECRET', valueFrom: { configMapKeyRef: { name: 'oidc-config', key: 'clientSecret' } } },
        { name: 'THV_OIDC_CONFIG_HASH', value: expect.stringMatching(/^[0-9a-f]{16}$/) },
      ])
      expect(contribution.conditions).toMatchObject([{ type: 'PlaintextSecret' }])
    })

    it('in a JSON document of a ConfigMap is treated like one in the spec', () => {
      const objects = { configMaps: { 'oidc-config': { 'oidc.json': '{"issuer":"https://i.example.com","clientSecret":"hunter2"}' } } }
      const { runConfig, env } = contributionOf(resolve(configMap(), objects))
      expect(runConfig?.oidc_config?.client_secret).toBe('hunter2')
      expect(env).toEqual([])
    })
  })

  it('whatever is asked for: it is blocked with a reason, or the runner gets settings that it reads', () => {
    const objects = {
      configMaps: {
        a: { 'ca.crt': CA },
        tools: { issuer: 'https://i.example.com' },
        'company-ca': { 'oidc.json': '{"issuer":"https://i.example.com"}', 'ca.crt': CA },
      },
      secrets: { a: ['a', 'tools', 'x1', 'company-ca'] },
    }
    fc.assert(
      fc.property(oidcConfigs, fc.boolean(), (config, hasFullPaths) => {
        if (config.type === 'inline' && hasFullPaths) {
          const { inline: own } = config
          if (own.thvCABundlePath !== undefined) own.thvCABundlePath = `/${own.thvCABundlePath}`
          if (own.jwksAuthTokenPath !== undefined) own.jwksAuthTokenPath = `/${own.jwksAuthTokenPath}`
        }
        const resolved = resolve(config, objects)
        if (!resolved.ok) {
          expect(resolved.blockers.length).toBeGreaterThan(0)
          return
        }
        const { oidc_config: oidc } = runnerReads(resolved.contribution)
        expect(oidc?.this_cluster || oidc?.issuer !== undefined).toBe(true)
        if (config.type === 'kubernetes' && config.kubernetes.serviceAccount) expect(oidc?.required_subject).toBeDefined()
      }),
    )
  })
})
