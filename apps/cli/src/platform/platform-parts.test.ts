import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { operatorManifests } from './platform-parts.ts'

const TEXT = readFileSync(new URL('../../../../deploy/manifests/local-operator.yaml', import.meta.url), 'utf8')

describe('the operator on this platform', () => {
  it('is what the manifests say, told that Services have addresses and packages run as they are', () => {
    const manifests = operatorManifests(TEXT)
    expect(manifests[0]?.object).toMatchObject({ kind: 'Namespace', metadata: { name: 'toolhive-system' } })
    const deployment = manifests.find(({ object }) => object.kind === 'Deployment')
    expect(deployment?.object).toMatchObject({
      spec: {
        template: {
          spec: {
            containers: [
              {
                image: 'toolhive-ts:0.1.0',
                env: expect.arrayContaining([
                  { name: 'TOOLHIVE_SERVICE_URLS', value: 'address' },
                  { name: 'TOOLHIVE_PACKAGE_IMAGES', value: 'native' },
                  { name: 'TOOLHIVE_REGISTRY_EXPORT_NAMESPACES', value: '*' },
                ]),
              },
            ],
          },
        },
      },
    })
  })

  it('serves no admission webhook, which the API server of this platform does not ask', () => {
    expect(TEXT).toContain('--webhook-bind-address')
    const manifests = operatorManifests(TEXT)
    expect(manifests.map(({ object }) => object.kind)).not.toContain('ValidatingWebhookConfiguration')
    expect(JSON.stringify(manifests)).not.toContain('--webhook-bind-address')
    expect(JSON.stringify(manifests)).toContain('--leader-elect')
  })

  it('rejects an unexpected kind', () => {
    expect(() => operatorManifests('apiVersion: v1\nkind: Surprise\nmetadata: { name: x }\n')).toThrow('Surprise is not expected there')
  })
})
