/** How kubectl and the server write an age: two units at most, the second only while it matters. */
export function humanDuration(ms: number): string {
  const seconds = Math.floor(ms / 1_000)
  if (seconds < -1) return '<invalid>'
  if (seconds < 0) return '0s'
  if (seconds < 120) return `${seconds}s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 10) return pair(minutes, 'm', seconds % 60, 's')
  if (minutes < 180) return `${minutes}m`
  const hours = Math.floor(minutes / 60)
  if (hours < 8) return pair(hours, 'h', minutes % 60, 'm')
  if (hours < 48) return `${hours}h`
  const days = Math.floor(hours / 24)
  if (hours < 192) return pair(days, 'd', hours % 24, 'h')
  if (days < 730) return `${days}d`
  const years = Math.floor(days / 365)
  return years < 8 ? pair(years, 'y', days % 365, 'd') : `${years}y`
}

/** The age since an RFC 3339 time, `<unknown>` without one. */
export function ageSince(timestamp: string, now: number): string {
  const time = Date.parse(timestamp)
  return Number.isNaN(time) ? '<unknown>' : humanDuration(now - time)
}

function pair(high: number, highUnit: string, low: number, lowUnit: string): string {
  return low === 0 ? `${high}${highUnit}` : `${high}${highUnit}${low}${lowUnit}`
}
