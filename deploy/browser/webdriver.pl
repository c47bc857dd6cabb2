# One connection to WebDriver, for which the link runs this (link.conf): joins it with chromedriver at
# 127.0.0.1:9228, and starts that with the first one. It ends with the container.
#
# The first connection's path begins with the secret of this browser, below which chromedriver takes
# commands from then on. A page finds the port, but no path there; and what names an Origin is refused.
use strict;
use warnings;
use Fcntl qw(:flock);
use IO::Socket::INET;
use POSIX qw(setsid);

# 60 s as for a driver of the process adapter: it takes 30 ms on an idle machine.
use constant { BUFFER => 65_536, HEAD_MAX => 65_536, PORT => 9228, START_SECONDS => 60 };

$SIG{PIPE} = 'IGNORE';
open STDERR, '>', '/dev/null';

sub connected { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => PORT, Timeout => 1) }

# The child's own child is adopted by the container's init.
sub start {
    my ($secret) = @_;
    my $child = fork // exit 1;
    if ($child) { waitpid $child, 0; return; }
    exit 0 if fork;
    setsid;
    open STDIN, '<', '/dev/null';
    open STDOUT, '>', '/dev/null';
    exec '/usr/bin/chromedriver', '--port=' . PORT, "--url-base=$secret", '--log-level=OFF';
    exit 1;
}

# One starts it, all others wait.
sub driver {
    my ($secret) = @_;
    open my $lock, '>', "$ENV{HOME}/webdriver-lock" or exit 1;
    flock $lock, LOCK_EX;
    my $socket = connected();
    start($secret) if !$socket;
    my $late = time + START_SECONDS;
    while (!$socket && time < $late) {
        select undef, undef, undef, 0.01;
        $socket = connected();
    }
    return $socket;
}

sub pass {
    my ($to, $text) = @_;
    while (length $text) {
        my $count = syswrite $to, $text;
        exit if !defined $count;
        substr($text, 0, $count) = '';
    }
}

my $head = '';
while ($head !~ /\n/) {
    sysread(STDIN, $head, BUFFER, length $head) or exit;
    exit if length $head > HEAD_MAX;
}
my ($secret) = $head =~ m{^[A-Z]+ (/[0-9a-f]{32})/} or exit;
my $driver = driver($secret) or exit 1;
pass($driver, $head);
my $both = '';
vec($both, fileno $_, 1) = 1 for *STDIN, $driver;
while (1) {
    my $ready = $both;
    next if select($ready, undef, undef, undef) <= 0;
    for my $way ([*STDIN, $driver], [$driver, *STDOUT]) {
        my ($from, $to) = @$way;
        next if !vec $ready, fileno $from, 1;
        sysread($from, my $text, BUFFER) or exit;
        pass($to, $text);
    }
}
