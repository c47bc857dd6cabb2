/** The key in the object store of what the session's browser showed last. */
export function thumbnailKey(session: { organizationId: string; id: string }): string {
  return `thumbnails/${session.organizationId}/${session.id}`;
}
