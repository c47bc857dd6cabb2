# The way out of a browser without a network: joins Chromium's connections to its proxy with those
# that the provisioner has opened to this container and keeps in stock. Nothing here opens a connection.
#
#   127.0.0.1:3128   Chromium's proxy
#   ~/egress         the provisioner's connections, through the link (egress.conf)
#
# A connection of Chromium takes one of the stock once it has sent something.
use strict;
use warnings;
use IO::Socket::INET;
use IO::Socket::UNIX;

use constant { BUFFER => 65_536, OPEN_MAX => 900 };

my $front = IO::Socket::INET->new(
    LocalAddr => '127.0.0.1', LocalPort => 3128, Listen => 512, ReuseAddr => 1
) or die "relay: $@\n";
my $back = IO::Socket::UNIX->new(Local => "$ENV{HOME}/egress", Listen => 512) or die "relay: $@\n";
$SIG{PIPE} = 'IGNORE';

# By file number: the socket, its side, its partner's number, what is to be written to it, and
# whether it has ended its side.
my %open;
my @stock;

sub add {
    my ($listener, $side) = @_;
    my $socket = $listener->accept or return;
    $socket->blocking(0);
    my $number = fileno $socket;
    $open{$number} = { socket => $socket, side => $side, partner => undef, out => '', ended => 0 };
    push @stock, $number if $side eq 'back';
}

sub drop {
    my ($number) = @_;
    my $one = delete $open{$number} or return;
    @stock = grep { $_ != $number } @stock;
    close $one->{socket};
    drop($one->{partner}) if defined $one->{partner};
}

# Ends the writing side of a socket whose partner has ended, once all is written.
sub settle {
    my ($number) = @_;
    my $one = $open{$number} or return;
    my $partner = $open{$one->{partner}};
    return if !$partner->{ended} || length $one->{out};
    return drop($number) if $one->{ended};
    shutdown $one->{socket}, 1;
}

sub receive {
    my ($number) = @_;
    my $one = $open{$number} or return;
    if (!defined $one->{partner}) {
        # One of the stock sends nothing before it is used: it has been closed.
        return drop($number) if $one->{side} eq 'back';
        my $taken = shift @stock;
        return if !defined $taken;
        ($one->{partner}, $open{$taken}{partner}) = ($taken, $number);
        return;
    }
    my $count = sysread $one->{socket}, my $text, BUFFER;
    if (!defined $count) {
        drop($number) if !$!{EAGAIN} && !$!{EINTR};
        return;
    }
    if ($count == 0) { $one->{ended} = 1; }
    else { $open{$one->{partner}}{out} .= $text; }
    settle($one->{partner});
}

sub transmit {
    my ($number) = @_;
    my $one = $open{$number} or return;
    my $count = syswrite $one->{socket}, $one->{out};
    if (!defined $count) {
        drop($number) if !$!{EAGAIN} && !$!{EINTR};
        return;
    }
    substr($one->{out}, 0, $count) = '';
    settle($number);
}

while (1) {
    my ($reading, $writing) = ('', '');
    if (keys %open < OPEN_MAX) { vec($reading, fileno $_, 1) = 1 for $front, $back; }
    for my $number (keys %open) {
        my $one = $open{$number};
        my $may_read =
            defined $one->{partner} ? !$one->{ended} && length $open{$one->{partner}}{out} < BUFFER
          : $one->{side} eq 'back' ? 1
          :                          @stock > 0;
        vec($reading, $number, 1) = 1 if $may_read;
        vec($writing, $number, 1) = 1 if length $one->{out};
    }
    next if select($reading, $writing, undef, undef) <= 0;
    my @numbers = keys %open;
    transmit($_) for grep { vec($writing, $_, 1) } @numbers;
    receive($_) for grep { vec($reading, $_, 1) } @numbers;
    add($front, 'front') if vec($reading, fileno $front, 1);
    add($back, 'back') if vec($reading, fileno $back, 1);
}
