import { configMaps, networkPolicies, pods } from '@thv/kube'
import { connect, namesOf } from './clients.ts'
import type { Story } from './story.ts'
import { SERVER } from './world.ts'

/* That a NetworkPolicy is obeyed is a matter of the cluster's network, and not of this story. */

export const permissionProfile: Story = {
  title: 'a permission profile becomes a NetworkPolicy and settings of the pod, and the server still runs',
  proves: ['002-062'],
  async tell(world) {
    const { fixture } = world.images
    const profile = { network: { outbound: { allow_host: ['api.example.com'], allow_port: [443] } } }
    await world.client.create(configMaps, { metadata: world.at('profiles'), data: { 'web.json': JSON.stringify(profile) } })
    await world.create(SERVER, 'closed', { image: fixture, permissionProfile: { type: 'builtin', name: 'none' } })
    await world.create(SERVER, 'web', {
      image: fixture,
      transport: 'streamable-http',
      permissionProfile: { type: 'configmap', name: 'profiles', key: 'web.json' },
    })
    const labels = (name: string) => ({ app: name, 'toolhive-basename': name })
    for (const name of ['closed', 'web']) {
      const { url } = await world.reaches(SERVER, name, 'Running')
      await using client = await connect('v2', await world.outside(url))
      world.expect(namesOf(await client.tools())).toContain('echo')
      const pod = await world.client.get(pods, world.at(`${name}-0`))
      // The policy means this very pod.
      world.expect(pod.metadata.labels).toMatchObject(labels(name))
      world.expect(pod.spec?.containers[0]?.['securityContext']).toMatchObject({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        runAsNonRoot: true,
        capabilities: { drop: ['ALL'] },
      })
    }
    const closed = await world.client.get(networkPolicies, world.at('closed-mcp'))
    world.expect(closed.spec).toEqual({ podSelector: { matchLabels: labels('closed') }, policyTypes: ['Ingress', 'Egress'] })
    const web = await world.client.get(networkPolicies, world.at('web-mcp'))
    world.expect(web.spec).toMatchObject({ podSelector: { matchLabels: labels('web') }, policyTypes: ['Ingress', 'Egress'] })
    world.expect(web.spec?.ingress).toHaveLength(1)
    world.expect(JSON.stringify(web.spec?.egress)).toContain('443')
    await world.hasReason(SERVER, 'web', { condition: 'PermissionProfilePartial', reason: 'HostRulesNotEnforced' })
  },
}
