import type { Static } from 'typebox'
import { obj, opt, stringMap } from '../schema/nodes.ts'
import { type EnvVariable, envList, imagePullSecrets } from './workload-fields.ts'

/** Additions of users to the objects that the operator makes for the proxy. Keys that the operator sets itself stay as they are. */
export const resourceOverrides = () =>
  obj('Additions to the objects made for the proxy. Labels and annotations that the operator sets win.', {
    proxyDeployment: opt(
      obj('Additions to the Deployment.', {
        ...metadata('Deployment'),
        podTemplateMetadataOverrides: opt(obj('Additions to the metadata of the pods.', metadata('pods'))),
        env: opt(envList('Environment of the proxy container.')),
        imagePullSecrets: opt(imagePullSecrets('Secrets for pulling images.')),
      }),
    ),
    proxyService: opt(obj('Additions to the Service.', metadata('Service'))),
  })

const metadata = (whose: string) => ({
  annotations: opt(stringMap(`Annotations for the ${whose}.`, { maxProperties: 256 })),
  labels: opt(stringMap(`Labels for the ${whose}.`, { maxProperties: 256 })),
})

export type ResourceOverrides = Static<ReturnType<typeof resourceOverrides>>

export interface MetadataAdditions {
  annotations: Record<string, string>
  labels: Record<string, string>
}

export interface CanonicalResourceOverrides {
  proxyDeployment: MetadataAdditions & {
    podTemplateMetadataOverrides: MetadataAdditions
    env: EnvVariable[]
    imagePullSecrets: { name: string }[]
  }
  proxyService: MetadataAdditions
}

/** Absent and empty mean the same, so both become empty; a pull secret without a name is none. */
export function normaliseResourceOverrides(value: ResourceOverrides | undefined): CanonicalResourceOverrides {
  const deployment = value?.proxyDeployment
  return {
    proxyDeployment: {
      ...additions(deployment),
      podTemplateMetadataOverrides: additions(deployment?.podTemplateMetadataOverrides),
      env: deployment?.env ?? [],
      imagePullSecrets: (deployment?.imagePullSecrets ?? []).flatMap(({ name }) => (name ? [{ name }] : [])),
    },
    proxyService: additions(value?.proxyService),
  }
}

function additions(value: Partial<MetadataAdditions> | undefined): MetadataAdditions {
  return { annotations: value?.annotations ?? {}, labels: value?.labels ?? {} }
}
