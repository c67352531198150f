/** Names of the wire, spelled out once. The fixture shares no constant with the code it is a test peer for. */
export const MODERN = '2026-07-28'
export const LEGACY_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const
export const NEWEST_LEGACY = LEGACY_VERSIONS[0]

export type Era = 'legacy' | 'modern'
export type EraSupport = 'dual' | Era
export type TransportKind = 'http' | 'sse' | 'stdio'

export const META_VERSION = 'io.modelcontextprotocol/protocolVersion'
export const META_CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'
export const META_CLIENT_INFO = 'io.modelcontextprotocol/clientInfo'
export const META_LOG_LEVEL = 'io.modelcontextprotocol/logLevel'
export const META_SERVER_INFO = 'io.modelcontextprotocol/serverInfo'
export const META_SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId'
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks'

export const HEADER_MISMATCH = -32020
export const MISSING_CAPABILITY = -32021
export const UNSUPPORTED_VERSION = -32022
/** Legacy era only. */
export const RESOURCE_NOT_FOUND = -32002
export const URL_ELICITATION_REQUIRED = -32042
export const SESSION_NOT_FOUND = -32001
export const BAD_SESSION = -32000

export const LOG_LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

export function isLogLevel(value: unknown): value is LogLevel {
  return LOG_LEVELS.some((level) => level === value)
}

export function atLeast(level: LogLevel, threshold: LogLevel): boolean {
  return LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(threshold)
}

export function isLegacyVersion(value: unknown): value is string {
  return LEGACY_VERSIONS.some((version) => version === value)
}

export function servedVersions(support: EraSupport): string[] {
  if (support === 'modern') return [MODERN]
  return support === 'legacy' ? [...LEGACY_VERSIONS] : [MODERN, ...LEGACY_VERSIONS]
}
