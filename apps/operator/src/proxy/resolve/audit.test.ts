import { problemList } from '@thv/resources/schema/normalize'
import { type AuditConfig, normaliseAuditConfig, REQUEST_EVENT_TYPES } from '@thv/resources/shared/audit-config'
import { normaliseTelemetryConfig, type TelemetryConfig } from '@thv/resources/shared/telemetry-config'
import { AUDIT_EVENT_TYPES } from '@thv/runconfig/audit-config'
import { expect, it } from 'vitest'
import { resolveAudit } from './audit.ts'
import { blockersOf, contributionOf, runnerReads } from './testing/snapshot.ts'

const telemetryOf = (value: TelemetryConfig) => normaliseTelemetryConfig(problemList(), 'spec.telemetry', value)
const resolveWith = (audit: AuditConfig, telemetry: TelemetryConfig = {}) =>
  resolveAudit({ audit: normaliseAuditConfig(audit), telemetry: telemetryOf(telemetry) })
const resolve = (audit: AuditConfig) => contributionOf(resolveWith(audit)).runConfig?.audit_config

it('turns audit events on with the defaults of the runner, or not at all', () => {
  expect(resolve({})).toBeUndefined()
  expect(resolve({ includeRequestData: true })).toBeUndefined()
  const audit = resolve({ enabled: true })
  expect(audit).toMatchObject({ enabled: true, include_request_data: false, include_response_data: false })
  // Whatever the reader would fill in anyway: written out, so that a later default of its own does not change running workloads.
  expect(runnerReads({ runConfig: { audit_config: audit } as never }).audit_config).toEqual(audit)
})

it('passes on every member', () => {
  const audit = resolve({
    ...{ enabled: true, component: 'c', eventTypes: ['mcp_tool_call'], excludeEventTypes: ['mcp_ping'], includeRequestData: true },
    ...{ includeResponseData: true, detectApplicationErrors: false, maxDataSize: 5, maxDelegationDepth: 2 },
  })
  expect(audit).toEqual({
    ...{ enabled: true, component: 'c', event_types: ['mcp_tool_call'], exclude_event_types: ['mcp_ping'], include_request_data: true },
    ...{ include_response_data: true, detect_application_errors: false, max_data_size: 5, max_delegation_depth: 2 },
    ...{ max_file_size: 104_857_600, max_files: 5, otlp: false },
  })
})

it('sends events to the collector only where there is one', () => {
  expect(blockersOf(resolveWith({ enabled: true, otlp: true }))).toEqual([expect.objectContaining({ reason: 'InvalidSpec' })])
  const sent = resolveWith({ enabled: true, otlp: true }, { openTelemetry: { enabled: true, endpoint: 'otel:4318' } })
  expect(sent).toMatchObject({ ok: true, contribution: { runConfig: { audit_config: { otlp: true } } } })
})

it('resources and run configs know the same types of events', () => {
  expect(REQUEST_EVENT_TYPES).toEqual(AUDIT_EVENT_TYPES)
})
