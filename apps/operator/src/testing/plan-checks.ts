import type { CanonicalMCPServerSpec } from '@thv/resources/kinds/mcp-server/normalise'
import { readRunConfig } from '@thv/runconfig/read-run-config'
import { RUN_CONFIG_KEY } from '@thv/runconfig/run-config-mount'
import type { WorkloadPlan } from '../deployment/deployment-plan.ts'

/** The plan as golden files show it: the files of ConfigMaps as objects and not as texts in a text. */
export function readablePlan(plan: WorkloadPlan): unknown {
  return {
    ...plan,
    children: plan.children.map((child) =>
      child.kind === 'ConfigMap' ? { ...child, object: { ...child.object, data: parsedFiles(child.object.data) } } : child,
    ),
  }
}

function parsedFiles(data: Readonly<Record<string, string>> = {}): Record<string, unknown> {
  return Object.fromEntries(Object.entries(data).map(([key, text]) => [key, JSON.parse(text)]))
}

/** The part for people: everything but the objects. */
export function toldBy({ children: _, alias: __, ...told }: WorkloadPlan): unknown {
  return told
}

export function runConfigOf({ children }: WorkloadPlan): Record<string, unknown> | undefined {
  const maps = children.flatMap((child) => (child.kind === 'ConfigMap' ? [child.object] : []))
  const text = maps.map(({ data }) => data?.[RUN_CONFIG_KEY]).find((found) => found !== undefined)
  return text === undefined ? undefined : (JSON.parse(text) as Record<string, unknown>)
}

/** Problems of the plan's RunConfig, warnings included; empty without one. */
export function runConfigProblems(plan: WorkloadPlan): unknown[] {
  const document = runConfigOf(plan)
  if (document === undefined) return []
  const read = readRunConfig(document)
  return read.ok ? [...read.warnings] : [...read.problems]
}

/** Types and reasons of all conditions that the plan sets. */
export function conditionWords({ conditions, blockers }: WorkloadPlan): { types: string[]; reasons: string[] } {
  return {
    types: [...conditions.map(({ type }) => type), ...blockers.map(({ condition }) => condition)],
    reasons: [...conditions, ...blockers].map(({ reason }) => reason),
  }
}

type CommonSpec = Pick<
  CanonicalMCPServerSpec,
  | 'oidcConfig'
  | 'podTemplateSpec'
  | 'authzConfig'
  | 'toolConfigRef'
  | 'externalAuthConfigRef'
  | 'authServerRef'
  | 'telemetry'
  | 'audit'
  | 'endpointPrefix'
  | 'resources'
  | 'resourceOverrides'
>

/** A random spec without what blocks nearly always because it is random: so nothing blocks in the namespace of the fixtures. */
export function usableSpec<S extends CommonSpec>(spec: S): S {
  const { oidcConfig, podTemplateSpec, authzConfig, externalAuthConfigRef, authServerRef, toolConfigRef, endpointPrefix, ...rest } = spec
  const { caBundleRef: _, ...collector } = rest.telemetry.openTelemetry
  const { proxyDeployment, proxyService } = rest.resourceOverrides
  const { annotations, labels } = proxyDeployment.podTemplateMetadataOverrides
  return {
    ...rest,
    telemetry: {
      ...rest.telemetry,
      openTelemetry: { ...collector, endpoint: 'otel:4318', headers: [], sensitiveHeaders: [], metrics: { enabled: true } },
    },
    audit: { ...rest.audit, otlp: rest.audit.otlp && collector.enabled },
    resources: { ...rest.resources, requests: {} },
    resourceOverrides: {
      proxyDeployment: {
        ...proxyDeployment,
        labels: usableLabels(proxyDeployment.labels),
        podTemplateMetadataOverrides: { annotations, labels: usableLabels(labels) },
        env: proxyDeployment.env.map(({ value }, index) => ({ name: `PROXY_${index}`, value: value.replaceAll('\0', '') })),
      },
      proxyService: { ...proxyService, labels: usableLabels(proxyService.labels) },
    },
    ...(toolConfigRef && { toolConfigRef: { name: 'read-only' } }),
    ...(endpointPrefix && { endpointPrefix: `/${endpointPrefix}` }),
    ...(oidcConfig?.type === 'kubernetes' && { oidcConfig: { ...oidcConfig, kubernetes: { ...oidcConfig.kubernetes, issuer: ISSUER } } }),
  } as unknown as S
}

function usableLabels(labels: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).flatMap(([key, value]) => (key === 'app' ? [] : [[key, `v${value.length}`]])))
}

const ISSUER = 'https://kubernetes.default.svc'

export function usableServerSpec(spec: CanonicalMCPServerSpec): CanonicalMCPServerSpec {
  const { permissionProfile, rateLimiting, ...rest } = usableSpec(spec)
  return {
    ...rest,
    ...(permissionProfile?.type === 'builtin' && { permissionProfile }),
    ...(rateLimiting && rest.oidcConfig && rest.replicas === 1 && { rateLimiting }),
    secrets: rest.secrets.map((secret, index) => ({ ...secret, targetEnvName: `SECRET_${index}` })),
    env: rest.env.map(({ value }, index) => ({ name: `VARIABLE_${index}`, value: value.replaceAll('\0', '') })),
    volumes: rest.volumes.map(({ readOnly }, index) => ({
      name: `v${index}`,
      hostPath: `/srv/${index}`,
      mountPath: `/v/${index}`,
      readOnly,
    })),
  }
}
