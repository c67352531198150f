import { configMaps, deployments, events, secrets, statefulSets } from '@thv/kube'
import { createCertificate } from '@thv/testkit/cluster/identity/certificate'
import { startFixture } from '@thv/testkit/mcp/fixture'
import { connect, namesOf, whoAmI } from './clients.ts'
import type { Story } from './story.ts'
import { tlsBefore } from './tls-before.ts'
import { REMOTE, TOOLS, type World } from './world.ts'

export const remoteProxy: Story = {
  title: 'a remote server outside the cluster is proxied: TLS with a private CA, headers from a Secret, tools filtered',
  proves: ['002-029', '002-105', '002-108', '002-112', '002-113', '004-048'],
  async tell(world) {
    await using remote = await startFixture({ host: world.hostAddress, name: 'far away' })
    const ca = createCertificate({ commonName: 'story CA', ca: true })
    await using secure = await tlsBefore(remote.url, {
      address: world.hostAddress,
      certificate: createCertificate({ commonName: 'far away', hosts: [world.hostAddress], issuer: ca }),
    })
    const { client, at } = world
    await client.create(configMaps, { metadata: at('trusted'), data: { 'ca.crt': ca.certPem } })
    await client.create(secrets, { metadata: at('token'), stringData: { key: 'top secret' } })
    await world.create(TOOLS, 'few', {
      toolsFilter: ['say', 'report_request', 'who_am_i'],
      toolsOverride: { echo: { name: 'say', description: 'Says it again' } },
    })
    await world.create(REMOTE, 'far', {
      remoteUrl: secure.url,
      caBundleRef: { configMapRef: { name: 'trusted' } },
      headerForward: {
        addPlaintextHeaders: { 'X-Team': 'weather' },
        addHeadersFromSecret: [{ headerName: 'X-Api-Key', valueSecretRef: { name: 'token', key: 'key' } }],
      },
      toolConfigRef: { name: 'few' },
    })
    await world.create(REMOTE, 'untrusting', { remoteUrl: secure.url })
    await world.create(REMOTE, 'plain', { remoteUrl: remote.url })
    await expectRefused(world)

    const { url } = await world.reaches(REMOTE, 'far', 'Ready')
    world.expect(url).toBe(await world.urlAt('mcp-far-remote-proxy', 8080, '/mcp'))
    for (const sdk of ['v1', 'v2'] as const) {
      await using far = await connect(sdk, await world.outside(url))
      world.expect((await whoAmI(far)).name).toBe('far away')
      world.expect(namesOf(await far.tools()).toSorted()).toEqual(['report_request', 'say', 'who_am_i'])
      world.expect((await far.call('say', { message: 'Grüße' })).structuredContent).toEqual({ arguments: { message: 'Grüße' } })
      const { headers } = (await far.call('report_request')).structuredContent as { headers: Record<string, string> }
      world.expect(headers).toMatchObject({ 'x-team': 'weather', 'x-api-key': 'top secret' })
    }
    world.expect(JSON.stringify((await client.list(configMaps, { namespace: world.namespace })).items)).not.toContain('top secret')
    world.expect((await client.get(configMaps, at('far-runconfig'))).data?.['runconfig.json']).toContain(secure.url)
    await expectOpenDoorTold(world, 'far')

    // Plain HTTP to a private address is nothing unusual; a certificate of an unknown CA is.
    const plain = await world.reaches(REMOTE, 'plain', 'Ready')
    await using direct = await connect('v2', await world.outside(plain.url))
    world.expect(namesOf(await direct.tools())).toContain('echo')
    await expectUntrusted(world)

    const { namespace } = world
    const names = (await client.list(deployments, { namespace })).items.map(({ metadata }) => metadata.name)
    world.expect(names).toEqual(['far', 'plain', 'untrusting'])
    world.expect((await client.list(statefulSets, { namespace })).items).toEqual([])
  },
}

/** Addresses that no setting of the story allows: named in the status, and nothing is started. */
async function expectRefused(world: World): Promise<void> {
  for (const [name, remoteUrl] of [
    ['loopback', 'http://127.0.0.1:8080/mcp'],
    ['metadata', 'http://169.254.169.254/mcp'],
  ] as const) {
    await world.create(REMOTE, name, { remoteUrl })
    const { message } = await world.hasReason(REMOTE, name, { condition: 'ConfigurationValid', reason: 'RemoteURLInvalid' })
    world.expect(message).toContain('spec.remoteUrl cannot be used')
    await world.reaches(REMOTE, name, 'Failed')
    world.expect(await world.client.tryGet(deployments, world.at(name))).toBeUndefined()
  }
}

async function expectOpenDoorTold(world: World, name: string): Promise<void> {
  await world.hasReason(REMOTE, name, { condition: 'Authenticated', reason: 'NoIncomingAuth' })
  await world.eventually('a Warning tells of it', async () =>
    (await world.client.list(events, { namespace: world.namespace })).items.some(
      ({ type, reason, regarding }) => type === 'Warning' && reason === 'NoIncomingAuth' && regarding?.name === name,
    ),
  )
}

/** The proxy is there, and says of the remote server only that it cannot be reached. */
async function expectUntrusted(world: World): Promise<void> {
  const { url } = await world.reaches(REMOTE, 'untrusting', 'Ready')
  await world.expect(connect('v1', await world.outside(url))).rejects.toThrow(/50[0-9]/)
}
