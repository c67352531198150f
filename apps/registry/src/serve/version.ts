import type { VersionInfo } from '../api/http/api-context.ts'

/** Of this program; the build may say more by variables. */
export const VERSION: VersionInfo = {
  version: '0.1.0',
  commit: process.env['THV_BUILD_COMMIT'] ?? 'unknown',
  buildDate: process.env['THV_BUILD_DATE'] ?? 'unknown',
}
