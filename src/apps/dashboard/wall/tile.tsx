import { useRef } from 'preact/hooks';
import { isOver, type Row } from '../sessions/rows.ts';
import { StatusBadge } from '../sessions/status-badge.tsx';
import { may } from '../api/caller.ts';
import { Link } from '../shell/link.tsx';
import { sessionPath } from '../shell/router.ts';
import { formatSpan } from '../shell/time.tsx';
import { useIsLookedAt, usePicture } from './use-picture.ts';

type TileProps = {
  row: Row;
  everyMs: number;
  now: number;
  isPinned: boolean;
  pin: () => void;
  openScreen: () => void;
};

/** One session of the wall. An ended one keeps its last picture, dimmed, with the reason. */
export function Tile({ row, everyMs, now, isPinned, pin, openScreen }: TileProps) {
  const tile = useRef<HTMLLIElement>(null);
  const isActive = row.status === 'active';
  const isLookedAt = useIsLookedAt(tile);
  const { picture, failure } = usePicture(row.id, isLookedAt && isActive, everyMs);
  return (
    <li class={`tile ${isActive ? '' : 'over'}`} ref={tile} data-id={row.id}>
      <div class="picture">
        {picture === null ? (
          <p class="muted">{failure ?? 'No picture yet'}</p>
        ) : (
          <img src={picture.url} alt={`What the browser of ${row.name} shows`} />
        )}
        {isOver(row) && (
          <p class="ended">Ended: {(row.endedReason ?? row.status).replaceAll(/[-_]/g, ' ')}</p>
        )}
      </div>
      <div class="tile-line">
        <Link to={sessionPath(row.id)} class="name">
          {row.name}
        </Link>
        <StatusBadge status={row.status} />
      </div>
      <div class="tile-line">
        <span class="muted small" title={failure ?? ''}>
          {picture !== null && ageOf(picture.at, now)}
          {picture !== null && failure !== null && isActive && ' · waiting for the next'}
        </span>
        <span class="tile-actions">
          <button
            type="button"
            class="chip small"
            aria-pressed={isPinned}
            aria-label={`Pin ${row.name}`}
            onClick={pin}
          >
            {isPinned ? 'Pinned' : 'Pin'}
          </button>
          {isActive && may('member') && (
            <button
              type="button"
              class="chip small"
              aria-label={`Live screen of ${row.name}`}
              onClick={openScreen}
            >
              Live screen
            </button>
          )}
        </span>
      </div>
    </li>
  );
}

function ageOf(at: number, now: number): string {
  const seconds = Math.max(0, Math.round((now - at) / 1000));
  return seconds === 0 ? 'just now' : `${formatSpan(seconds * 1000)} ago`;
}
