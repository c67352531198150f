import { readSourcesReport, SOURCES_PATH, type SourcesReport } from '@thv/catalog/status/sources-report'
import type { ReportKind } from './report-reader.ts'

const MAX_BYTES = 1 << 20

export const SOURCES: ReportKind<SourcesReport> = { path: SOURCES_PATH, maxBytes: MAX_BYTES, read: readSourcesReport }
