import { type ConfigMap, configMaps } from '@thv/kube'
import { startOidcServer } from '@thv/testkit/oidc/oidc-server'
import type { Story } from './story.ts'
import { REGISTRY } from './world.ts'

const AUDIENCE = 'registry'
const LIMIT_MS = 60_000

export const registryOauth: Story = {
  title: 'a registry with oauth: 401 without a token, 200 with one of its identity provider',
  proves: [],
  async tell(world) {
    await using idp = await startOidcServer({ host: world.hostAddress })
    await using other = await startOidcServer({ host: world.hostAddress })
    const data = { 'registry.json': JSON.stringify({ servers: { fetch: { image: 'ghcr.io/org/fetch:1' } } }) }
    await world.client.create(configMaps, { metadata: world.at('servers'), data } as ConfigMap)
    const provider = { name: 'people', issuerUrl: idp.issuer, audience: AUDIENCE, allowPrivateIP: true }
    await world.create(REGISTRY, 'guarded', {
      registries: [{ name: 'servers', configMapRef: { name: 'servers' } }],
      authConfig: { mode: 'oauth', oauth: { providers: [provider] } },
      // The provider of this story speaks plain HTTP.
      podTemplateSpec: { spec: { containers: [{ name: 'registry-api', env: [{ name: 'THV_REGISTRY_INSECURE_URL', value: 'true' }] }] } },
    })
    const { url } = await world.reaches(REGISTRY, 'guarded', 'Ready')
    const base = (await world.outside(url)).replace(/\/$/, '')
    const list = async (token?: string) => {
      const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
      return await fetch(`${base}/registry/guarded/v0.1/servers`, { headers, signal: AbortSignal.timeout(LIMIT_MS) })
    }

    const unknown = await list()
    world.expect(unknown.status).toBe(401)
    world.expect(unknown.headers.get('www-authenticate')).toMatch(/^Bearer realm="mcp-registry"/)
    const good = await idp.token({ audience: AUDIENCE, claims: { sub: 'ada' } })
    const names = await world.eventually('the token is accepted', async () => {
      const answer = await list(good)
      if (answer.status !== 200) throw new Error(`it answers ${answer.status} ${await answer.text()}`)
      const { servers } = (await answer.json()) as { servers: { server: { name: string } }[] }
      return servers.length > 0 && servers.map(({ server }) => server.name)
    })
    world.expect(names).toEqual(['io.github.stacklok/fetch'])
    for (const token of [await idp.token({ audience: 'others' }), await other.token({ audience: AUDIENCE }), `${good}x`])
      world.expect((await list(token)).status).toBe(401)
  },
}
