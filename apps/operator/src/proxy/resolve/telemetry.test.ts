import { problemList } from '@thv/resources/schema/normalize'
import { normaliseTelemetryConfig, type TelemetryConfig } from '@thv/resources/shared/telemetry-config'
import { telemetry as telemetries } from '@thv/resources/testing/workload-arbitraries'
import { createCertificate } from '@thv/testkit/cluster/identity/certificate'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { resolveTelemetry } from './telemetry.ts'
import { blockersOf, contributionOf, runnerReads, type SnapshotObjects, snapshot } from './testing/snapshot.ts'

const resolve = (telemetry: TelemetryConfig, objects: SnapshotObjects = {}) =>
  resolveTelemetry({
    telemetry: normaliseTelemetryConfig(problemList(), 'spec.telemetry', telemetry),
    ...{ sendsAudit: false, name: 'x', namespace: 'team', lookup: snapshot(objects) },
  })

const { certPem: CERTIFICATE } = createCertificate({ commonName: 'ca', ca: true })

describe('resolveTelemetry', () => {
  it('adds nothing unless something is enabled', () => {
    expect(contributionOf(resolve({}))).toEqual({})
    expect(contributionOf(resolve({ openTelemetry: { endpoint: 'otel:4318', tracing: { enabled: true } } }))).toEqual({})
  })

  it('sends to the collector what is asked for', () => {
    const { runConfig, env } = contributionOf(
      resolve({
        openTelemetry: {
          enabled: true,
          endpoint: 'https://otel.monitoring.svc:4318/',
          headers: ['x-team=a=b', 'X-Empty='],
          insecure: true,
          metrics: { enabled: true },
          tracing: { enabled: true, samplingRate: '0.5' },
          useLegacyAttributes: false,
        },
        prometheus: { enabled: true },
      }),
    )
    expect(runConfig).toEqual({
      telemetry_config: {
        endpoint: 'otel.monitoring.svc:4318',
        service_name: 'x',
        tracing_enabled: true,
        metrics_enabled: true,
        sampling_rate: '0.5',
        headers: { 'x-team': 'a=b', 'X-Empty': '' },
        sensitive_headers: [],
        insecure: true,
        enable_prometheus_metrics_path: true,
        metrics_on_transport_port: true,
        environment_variables: [],
        custom_attributes: {},
        use_legacy_attributes: false,
      },
    })
    expect(env).toEqual([{ name: 'OTEL_RESOURCE_ATTRIBUTES', value: 'service.name=x,service.namespace=team' }])
  })

  it('takes secret headers from variables, trusts a CA bundle and adds resource attributes', () => {
    const { runConfig, env, secrets, volumes } = contributionOf(
      resolve(
        {
          openTelemetry: {
            ...{ enabled: true, endpoint: 'otel:4318', tracing: { enabled: true }, resourceAttributes: { team: 'a' } },
            sensitiveHeaders: [{ name: 'X-Api-Key', secretKeyRef: { name: 'otel', key: 'key' } }],
            caBundleRef: { configMapRef: { name: 'ca', key: 'ca.crt' } },
          },
        },
        { secrets: { otel: ['key'] }, configMaps: { ca: { 'ca.crt': CERTIFICATE } } },
      ),
    )
    expect(runConfig?.telemetry_config).toMatchObject({
      ...{ sensitive_headers: ['X-Api-Key'], ca_cert_path: '/etc/toolhive/otel-ca/ca.crt', custom_attributes: { team: 'a' } },
    })
    const secretKeyRef = { name: 'otel', key: 'key' }
    expect(env).toContainEqual({ name: 'TOOLHIVE_OTEL_HEADER_X_API_KEY', valueFrom: { secretKeyRef } })
    expect(env).toContainEqual({ name: 'THV_OTEL_CA_HASH', value: expect.any(String) })
    expect(secrets).toEqual(['otel'])
    expect(volumes).toEqual([expect.objectContaining({ name: 'otel-ca' })])
  })

  it('has Prometheus alone when only that is enabled, and nothing of a collector that is off', () => {
    const { runConfig, env } = contributionOf(
      resolve({ prometheus: { enabled: true }, openTelemetry: { endpoint: 'otel:4318', headers: ['a=b'], tracing: { enabled: true } } }),
    )
    expect(runConfig?.telemetry_config).toMatchObject({ enable_prometheus_metrics_path: true, tracing_enabled: false, headers: {} })
    expect(runConfig?.telemetry_config).not.toHaveProperty('endpoint')
    expect(env).toEqual([])
  })

  it('escapes what would be more than one attribute, or a variable of the kubelet', () => {
    const { env } = contributionOf(resolve({ openTelemetry: { enabled: true, serviceName: 'a,b=$(HOME)' } }))
    expect(env?.[0]?.value).toBe('service.name=a%2Cb%3D%24(HOME),service.namespace=team')
  })

  it.each([
    ['traces and no endpoint', { tracing: { enabled: true } }, /endpoint must be set/],
    ['a CA bundle without TLS', { insecure: true, caBundleRef: { configMapRef: { name: 'ca' } } }, /must not both be set/],
    [
      'a header in both lists',
      { headers: ['a=hunter2'], sensitiveHeaders: [{ name: 'A', secretKeyRef: { name: 's', key: 'k' } }] },
      /is set twice/,
    ],
    [
      'a Secret that is missing',
      { sensitiveHeaders: [{ name: 'A', secretKeyRef: { name: 's', key: 'k' } }] },
      /names Secret s, which does not exist/,
    ],
    ['an endpoint and nothing to send', { endpoint: 'otel:4318' }, /endpoint is of no use/],
    ['an endpoint with a password', { endpoint: 'http://me:hunter2@otel', tracing: { enabled: true } }, /must not carry a user name/],
    ['an endpoint that is none', { endpoint: 'https://', tracing: { enabled: true } }, /must be the host and port/],
    ['an endpoint of another scheme', { endpoint: 'grpc://otel', tracing: { enabled: true } }, /must be the host and port/],
    ['a header that is none', { headers: ['hunter2'] }, /headers\[0\] must be NAME=VALUE/],
    ['a header of two lines', { headers: ['a=hunter2\r\nb: c'] }, /headers\[0\] must be NAME=VALUE/],
    ['a header twice', { headers: ['a=1', 'A=hunter2'] }, /headers\[1\] sets A a second time/],
  ])('refuses %s', (_, openTelemetry, message) => {
    const blockers = blockersOf(resolve({ openTelemetry: { enabled: true, ...openTelemetry } }))
    expect(blockers).toEqual([{ condition: 'ConfigurationValid', reason: 'InvalidSpec', message: expect.stringMatching(message) }])
    expect(JSON.stringify(blockers)).not.toContain('hunter2')
  })

  it('whatever is asked for: it is blocked with a reason, or the runner reads it', () => {
    fc.assert(
      fc.property(telemetries, (telemetry) => {
        const resolved = resolveTelemetry({
          telemetry,
          sendsAudit: false,
          name: 'x',
          namespace: 'team',
          lookup: snapshot({ secrets: { otel: ['key'] } }),
        })
        if (resolved.ok) runnerReads(resolved.contribution)
        else expect(resolved.blockers.length).toBeGreaterThan(0)
      }),
    )
  })
})
